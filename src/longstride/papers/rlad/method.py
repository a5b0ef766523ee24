"""Abstractions that one role of a policy proposes and another one uses (`Abstracted`), how both are asked (`AbstractionForm`), what
a model is shown of it first (`AbstractionsShown`), and m abstractions with k solutions each at the test (`Abstracting`)."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from longstride.core.component import Component
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, CountOrZero
from longstride.core.task import Task
from longstride.core.trajectory import MEASURED, Trajectory
from longstride.envs.base import Hinting, Solver
from longstride.envs.text import THOUGHT
from longstride.methods.base import Sample
from longstride.rollout.context import checked_form
from longstride.rollout.episode import Plan
from longstride.rollout.planning import Planner, Sampler, Stages
from longstride.rollout.players import Player
from longstride.run.imitation import Demonstrations, play_texts, training_plans, turn_samples
from longstride.strategies.base import EvalPlan, further_plan
from longstride.strategies.best_of import BestOf

if TYPE_CHECKING:
    from longstride.models.chat import ChatFormat
    from longstride.run.recipe import Recipe

PROPOSAL, SOLUTION = "abstraction", "solution"
"""Roles of an episode that proposes an abstraction, and of one that has it in view."""


class AbstractionForm(Component):
    """How a policy is asked in its two roles. An abstraction is a single turn, whatever the environment makes of it."""

    ask: str = "\nPropose in one sentence how to begin. Do not solve it."
    """What stands behind the goal of who proposes."""
    words: Annotated[str, AfterValidator(partial(checked_form, names=frozenset({"abstraction"})))] = (
        "\nBegin like this: {abstraction}"
    )
    """What stands behind the goal of who solves."""
    tokens: Count = 64
    """Sampled tokens of an abstraction."""

    def proposal(self, plan: Plan) -> Plan:
        """The plan of an episode that proposes an abstraction for a plan's task."""
        tokens = min(self.tokens, plan.budget.turn_tokens)
        budget = plan.budget.model_copy(update={"turns": 1, "turn_tokens": tokens})
        return replace(plan, task=_with(plan.task, plan.task.goal + self.ask), budget=budget, role=PROPOSAL)

    def solution(self, plan: Plan, abstraction: str) -> Plan:
        """The plan of an episode that has an abstraction in view."""
        goal = plan.task.goal + self.words.format(abstraction=abstraction)
        return replace(plan, task=_with(plan.task, goal), role=SOLUTION)


class Abstracted(Sampler):
    """For each task some abstractions, and with each of them some solutions. The members of a group are shared out among
    the abstractions, and are a group each; the abstractions of a task are one, too.

    An abstraction earns the share of its solutions that succeed, and nothing where it is empty or leaks: where one of
    some attempts succeeds that read the abstraction in the place of the goal. Abstractions without a success need no
    such test.
    """

    form: AbstractionForm = AbstractionForm()
    """How both roles are asked."""
    abstractions: Count = 4
    """Of a task."""
    alone: CountOrZero = 4
    """Attempts that read an abstraction alone; they are counted and not trained."""

    def plan(self, planner: Planner) -> Stages:
        if planner.size % self.abstractions:
            raise ConfigError(
                f"sampler {self.type_name()} shares a group of {planner.size} solutions out among {self.abstractions} "
                "abstractions; set group_size to a multiple of sampler.abstractions"
            )
        asked = [(task, planner.group(task, self.abstractions)) for task in planner.tasks(planner.groups)]
        tasks = {plan.group: task for task, plans in asked for plan in plans}
        proposed = yield [self.form.proposal(plan) for _, plans in asked for plan in plans]
        told = [t for t in proposed if said(t)]
        size = planner.size // self.abstractions
        plans = [self.form.solution(p, said(t)) for t in told for p in planner.group(tasks[t.group], size)]
        solved = (yield plans) if plans else []
        by_abstraction = dict(zip((t.ordinal for t in told), _parts(solved, size), strict=True))
        suspects = [t for t in told if any(s.success for s in by_abstraction[t.ordinal])] if self.alone else []
        tests = [p for t in suspects for p in planner.group(_with(tasks[t.group], said(t)), self.alone, role=MEASURED)]
        tested = (yield tests) if tests else []
        leaks = {
            t.ordinal for t, of in zip(suspects, _parts(tested, self.alone), strict=True) if any(s.success for s in of)
        }
        for t in proposed:
            if not t.stop.failed:
                earned = [s.success for s in by_abstraction.get(t.ordinal, ()) if not s.stop.failed]
                t.reward = 0.0 if t.ordinal in leaks or not earned else fmean(earned)
                t.success = t.reward > 0
                t.evidence = {"solved": sum(earned), "of": len(earned), "leaks": t.ordinal in leaks}
        return proposed + solved + tested


class AbstractionsShown(Demonstrations):
    """Both roles, as scripts play them: abstractions are hints of the task source (`envs.base.Hinting`), and solutions
    have them in view. For a model that follows no instructions, and whose thoughts begin with a mark."""

    form: AbstractionForm = AbstractionForm()
    """How both roles are asked."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        source = recipe.tasks
        if not (isinstance(source, Solver) and isinstance(source, Hinting)):
            raise ConfigError(
                f"both roles are shown by tasks that know hints and solutions, and {source.type_name()} has no `hint` or "
                "no `demonstrate`: write them, or set cloning="
            )
        plans, texts = [], []
        for k, plan in enumerate(training_plans(recipe, episodes, rng)):
            hint = source.hint(plan.task)
            solves = self.form.solution(plan, hint) if hint else plan
            plans.append(solves if k % 2 else self.form.proposal(plan))
            texts.append(source.demonstrate(plan.task) if k % 2 else [f"{THOUGHT} {hint}" if hint else ""])
        shown = [t for t in play_texts(recipe, plans, texts) if t.success or t.role == PROPOSAL and said(t)]
        return [s for t in shown for s in turn_samples(t, recipe, chat)]


class Abstracting(BestOf):
    """Abstractions, and solutions with each of them; one solution of them all counts. Where a task has no abstraction
    that says anything, it is solved without."""

    form: AbstractionForm = AbstractionForm()
    """How both roles are asked."""
    abstractions: Count = 4
    """Of a task (m)."""
    attempts: Count = 4
    """With each abstraction (k)."""

    @property
    def name(self) -> str:
        return f"abstracting_{self.abstractions}_{self.attempts}_by_{self.by.name}"

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        self.by.check(player)
        m, k = self.abstractions, self.attempts
        own = [[further_plan(p, n) for n in range(m * (k + 1))] for p in plans]
        proposed = yield [self.form.proposal(p) for of in own for p in of[:m]]
        texts = [said(t) for t in proposed]
        found = yield [
            self.form.solution(p, text) if (text := texts[m * j + n // k]) else p
            for j, of in enumerate(own)
            for n, p in enumerate(of[m:])
        ]
        chosen = self.by.choose(_parts(found, m * k), player)
        spent = [sum(t.sampled_tokens for t in part) for part in _parts(proposed, m)]
        return [e._replace(further_tokens=e.further_tokens + n) for e, n in zip(chosen, spent, strict=True)]


def said(t: Trajectory) -> str:
    """The abstraction that an episode proposed, without the mark of a thought; empty where it has none."""
    return "" if t.stop.failed or not t.turns else t.turns[0].text.strip().removeprefix(THOUGHT).strip()


def _with(task: Task, goal: str) -> Task:
    return task.model_copy(update={"goal": goal})


def _parts(played: Sequence[Trajectory], size: int) -> list[list[Trajectory]]:
    """Parts of so many episodes, in their order."""
    return [list(played[k : k + size]) for k in range(0, len(played), max(size, 1))]

"""Re-attempts of failed tasks with a hint in view (`Guided`), where hints are from (`Hints`), and the replay that trains what
was said with a hint as if it had been said without (`WithoutHints`)."""

import random
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator

from longstride.core.component import Component
from longstride.core.errors import ConfigError, OwnCodeError, short
from longstride.core.experience import Experience
from longstride.core.numbers import Limit
from longstride.core.task import Task
from longstride.core.trajectory import LOGPROB_DIGITS, Trajectory, Turn, by_group
from longstride.curriculum.tasks import Tasks
from longstride.envs.base import Env, Hinting, OtherTasks, Solver
from longstride.methods import MixedGroups
from longstride.methods.base import Sample
from longstride.rollout.branching import Codec
from longstride.rollout.context import checked_form
from longstride.rollout.episode import Plan
from longstride.rollout.planning import Planner, Sampler, Stages
from longstride.run.imitation import SolverDemonstrations

if TYPE_CHECKING:
    from longstride.models.chat import ChatFormat
    from longstride.run.recipe import Recipe

GUIDED = "guided"
"""Role of an attempt with a hint in view."""
HINT = "hint"
"""In `Trajectory.evidence`: where the hint stands in its prompts, from this id to that, and the ids that stand there
without it."""
Words = Annotated[str, AfterValidator(partial(checked_form, names=frozenset({"hint"})))]


class Hints(Component):
    """Family: where hints are from."""

    @abstractmethod
    def of(self, source: Tasks, tasks: Sequence[Task], attempts: Sequence[Sequence[Trajectory]]) -> Sequence[str]:
        """Of each task a hint; an empty one where nothing helps. The same question has to have the same reply: each
        process of several asks.

        Args:
            source: where the tasks come from.
            tasks: that no attempt solved.
            attempts: at each of them, in this iteration; none of them failed for want of infrastructure.
        """


class SourceHints(Hints):
    """The source of the tasks knows what helps (`envs.base.Hinting`)."""

    def of(self, source: Tasks, tasks: Sequence[Task], attempts: Sequence[Sequence[Trajectory]]) -> Sequence[str]:
        if not isinstance(source, Hinting):
            raise ConfigError(
                f"hints are asked of the tasks' source, and {type(source).__name__} has no `hint`: write one (a task to "
                "a text), or set sampler.hints.type to another one, such as column_hints"
            )
        return [source.hint(task) for task in tasks]


class ColumnHints(Hints):
    """Hints stand beside the tasks: a column of a file (`tasks.keep`), or whatever else is in `Task.meta`."""

    column: str = "hint"
    """Its name; a row without it, or with nothing in it, has no hint."""

    def of(self, source: Tasks, tasks: Sequence[Task], attempts: Sequence[Sequence[Trajectory]]) -> Sequence[str]:
        found = [task.meta.get(self.column) or "" for task in tasks]
        for task, hint in zip(tasks, found, strict=True):
            if not isinstance(hint, str):
                raise ConfigError(f"task {task.id!r}: expected a text in {self.column!r}, got {short(hint)}")
        return found


class Guided(Sampler):
    """Groups; then each task that no member of its group solved is attempted again with a hint behind its goal.

    Attempts with a hint belong to the group of those without, so that credit compares all attempts at a task: one that
    the hint made succeed stands above the failures before it.
    """

    hints: Hints = SourceHints()
    """Where hints are from."""
    attempts: Limit = None
    """With a hint, at a task; as many as without one, if left out."""
    words: Words = "\nHint: {hint}"
    """What stands behind the goal."""

    def plan(self, planner: Planner) -> Stages:
        plans = [plan for task in planner.tasks(planner.groups) for plan in planner.group(task)]
        tasks = {plan.group: plan.task for plan in plans}
        played = yield plans
        failed = [group for group in by_group(played) if not any(t.success for t in group)]
        asked = [tasks[group[0].group] for group in failed]
        hints = self.hints.of(planner.source, asked, failed)
        if len(hints) != len(asked):
            raise OwnCodeError(f"{type(self.hints).__name__} gives {len(hints)} hints for {len(asked)} tasks")
        told = {group[0].group: self.words.format(hint=hint) for group, hint in zip(failed, hints, strict=True) if hint}
        again: list[Plan] = []
        for first, *_ in failed:
            if words := told.get(first.group):
                hinted = replace(first, task=with_words(tasks[first.group], words))
                again += planner.more(hinted, self.attempts or planner.size, GUIDED)
        if not again:
            return played
        found = yield again
        for t in found:
            if not t.stop.failed:
                t.evidence[HINT] = _place(planner.chat, t, len(tasks[t.group].goal), told[t.group])
        return played + found


class WithoutHints(MixedGroups):
    """Mixed groups, in which what was said with a hint is trained as if it had been said without: each prompt loses the
    hint, and keeps all else. With `MixedGroups` in its place the hint is kept.

    The policy without the hint would have sampled otherwise, so a loss of a ratio (`methods.ratios`) has to know what
    to divide by.
    """

    old: Literal["plain", "hinted"] = "plain"
    """`plain`: the policy without the hint, as it is now. The ratio begins at 1, as if the policy had sampled that by
    itself, which is biased towards what hints lead to: the wanted distillation. `hinted`: the policy that sampled, with
    the hint. The ratio is the importance weight, without bias where nothing is clipped, and next to nothing where the
    hint made the difference; of a failure that the hint made unlikely it has no bound (`PPO.dual_clip` gives it one)."""

    def renew(self, drawn: list[Trajectory], rng: random.Random, experience: Experience) -> list[Trajectory]:
        found = [_without(t) if HINT in t.evidence else t for t in drawn]
        if self.old == "plain":
            said = [
                (turn, Sample.of(t, k, [0.0] * len(turn.sampled_ids)))
                for t in found
                if HINT in t.evidence
                for k, turn in enumerate(t.turns)
                if turn.sampled_ids
            ]
            logprobs = experience.logprobs([sample for _, sample in said]) if said else []
            for (turn, _), own in zip(said, logprobs, strict=True):
                turn.behaviour_logprobs = [round(x, LOGPROB_DIGITS) for x in own]
        return found


class HintedTasks(OtherTasks):
    """The tasks of another source, each with a hint behind its goal."""

    hints: Hints = SourceHints()
    """Where hints are from."""
    words: Words = Guided().words
    """What stands behind the goal."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return self._hinted(super().sample(rng, n))

    def held_out(self, n: int) -> list[Task]:
        return self._hinted(super().held_out(n))

    def demonstrate(self, task: Task) -> list[str]:
        """What the source's solver says. Raises: ConfigError where it has none."""
        if not isinstance(self.tasks, Solver):
            raise ConfigError(f"tasks {type(self.tasks).__name__} know no solutions (they have no `demonstrate`)")
        return self.tasks.demonstrate(task)

    def env(self) -> Env:
        return self.tasks.env()

    def _hinted(self, tasks: list[Task]) -> list[Task]:
        hints = self.hints.of(self.tasks, tasks, [()] * len(tasks))
        return [with_words(t, self.words.format(hint=h)) if h else t for t, h in zip(tasks, hints, strict=True)]


class HintsFollowed(SolverDemonstrations):
    """Solutions of tasks with hints, which need not be the recipe's own: what a model is shown that cannot read hints."""

    tasks: HintedTasks
    """What is solved."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        return super().samples(recipe.replace(tasks=self.tasks), chat, episodes, rng)


def with_words(task: Task, words: str) -> Task:
    """The task with words behind its goal."""
    return task.model_copy(update={"goal": task.goal + words})


def _place(chat: Codec, t: Trajectory, begin: int, words: str) -> list[Any]:
    """Where words that begin behind so many characters of a goal stand in the prompts of an episode (see `HINT`)."""
    goal = t.task.goal
    if goal[begin : begin + len(words)] != words:
        raise ConfigError(
            f"a hint stands behind the goal of a task, and the environment of {t.task.source} makes up goals itself"
        )
    told, plain = chat.encode(goal), chat.encode(goal[:begin] + goal[begin + len(words) :])
    same = next((k for k, (a, b) in enumerate(zip(told, plain, strict=False)) if a != b), min(len(told), len(plain)))
    read = [turn.prompt_ids for turn in t.turns if turn.sampled_ids]
    places = {_find(prompt, told) for prompt in read}
    if len(places) > 1 or None in places:
        raise ConfigError(
            "a hint stands behind the goal, which the recipe's context has to show at one place in every prompt: take "
            "another context.type"
        )
    at = (places.pop() if places else 0) or 0
    return [at + same, at + len(told), plain[same:]]


def _find(ids: list[int], part: list[int]) -> int | None:
    """Where a part of some ids begins."""
    return next((k for k in range(len(ids) - len(part) + 1) if ids[k : k + len(part)] == part), None)


def _without(t: Trajectory) -> Trajectory:
    """An episode whose prompts have no hint."""
    begin, end, plain = t.evidence[HINT]

    def cut(turn: Turn) -> Turn:
        prompt = turn.prompt_ids
        return replace(turn, prompt_ids=[*prompt[:begin], *plain, *prompt[end:]] if turn.sampled_ids else prompt)

    return replace(t, turns=[cut(turn) for turn in t.turns])

"""Demonstrations as training data: before a run (`Cloning`) and beside it (`Imitation`).

What always holds: only what succeeded is imitated; a demonstration is played in the recipe's own environment under its
own context policy, so its prompts are those that the policy will read; which demonstrations are drawn depends on the
random stream that is given.
"""

import random
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from longstride.core.component import Component
from longstride.core.content import by_placeholder, placed
from longstride.core.errors import ConfigError, LongstrideWarning
from longstride.core.implementation import implementation
from longstride.core.numbers import Count, Positive
from longstride.core.seeds import derive
from longstride.core.task import Task
from longstride.core.trajectory import TaskKey, Trajectory, Turn
from longstride.envs.base import Solver
from longstride.learner.config import LearnerConfig
from longstride.methods.base import Sample, demonstration
from longstride.models.api import ChatAPI
from longstride.rollout.context import Past, SpentBudget
from longstride.rollout.episode import Episode, Plan
from longstride.rollout.formats import Found, read_episodes
from longstride.rollout.players import ScriptedPlayer
from longstride.rollout.pool import Pool
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore
from longstride.run.experiment import check_run_folder
from longstride.run.filters import Filter, FoundStep, filtered
from longstride.strategies import Strategy

if TYPE_CHECKING:
    from longstride.models.chat import ChatFormat
    from longstride.models.load import Policy
    from longstride.run.recipe import Recipe


class Demonstrations(Component):
    """Family: where demonstrations come from."""

    @abstractmethod
    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        """The turns of so many demonstrated episodes, each token of weight 1; none where none of them succeeded.

        Args:
            recipe: gives tasks, environment, context policy and reward. Runs that differ in nothing but what
                `run.recipe.AFTERWARDS` names may share what is trained on this before them.
            chat: makes ids of texts.
            episodes: how many are drawn.
            rng: the draw's own stream.

        Raises:
            ConfigError: there is nothing to draw from.
        """

    def of_policy(self, policy: "Policy", recipe: "Recipe", episodes: int, rng: random.Random) -> list[Sample]:
        """`samples`, where they may be made by the policy as it is now."""
        return self.samples(recipe, policy.chat, episodes, rng)


def play_texts(recipe: "Recipe", plans: Sequence[Plan], texts: Sequence[Sequence[str]]) -> list[Trajectory]:
    """The episodes of plans in which a text is said in each turn, and the last one again where there are more turns.

    Args:
        recipe: gives the environment and the reward.
        plans: their ordinals are their places.
        texts: of each plan.
    """

    def say(episode: Episode) -> str:
        turns = texts[episode.plan.ordinal]
        return turns[min(episode.turns, len(turns) - 1)]

    return Pool(ScriptedPlayer(say), recipe.env, recipe.test_reward, recipe.tasks.at_once, recipe.pool).run(plans)


class SolverDemonstrations(Demonstrations):
    """Training tasks, solved by the task source's own solver."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        source = recipe.tasks
        if not isinstance(source, Solver):
            raise ConfigError(
                f"demonstrations of a solver need tasks that know their solutions; {source.type_name()} has no "
                "`demonstrate`: write one (a task to what is said, turn by turn), or set demonstrations.type to "
                "stored_successes or model_successes"
            )
        if recipe.actions == "tool_calls":
            raise ConfigError(
                "a solver demonstrates in the environment's own words, which are no calls of tools: set "
                "actions=explained, or demonstrations.type to stored_successes or model_successes"
            )
        plans = training_plans(recipe, episodes, rng)
        played = play_texts(recipe, plans, [self.texts(source, plan.task) for plan in plans])
        return [s for t in played if t.success for s in turn_samples(t, recipe, chat)]

    def texts(self, source: Solver, task: Task) -> list[str]:
        """What is said in a task, turn by turn."""
        return source.demonstrate(task)


class ModelSuccesses(Demonstrations):
    """Training tasks, played by another model, a teacher: what succeeds is imitated (rejection sampling). Its words are
    made ids of the policy's, so it may have another tokenizer, or be behind a chat API."""

    model: str | ChatAPI
    """A run folder, a model's folder, a name, or a model behind a chat API; it acts as the policy does."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        """See `run.teachers.taught`."""
        return implementation(ModelSuccesses)(self, recipe, chat, episodes, rng)


class StrategySuccesses(Demonstrations):
    """Training tasks, played by a policy under a strategy of test time, such as a search (expert iteration): of what
    succeeds, the steps that pass the filters are imitated."""

    strategy: Strategy
    """How tasks are played."""
    filters: tuple[Filter, ...] = ()
    """What is imitated of a success: all of it, if there are none."""
    model: str = ""
    """Who plays: a run folder, a model's folder, or a name; if empty the policy as it is then."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        """Of `model`, or of the model that the recipe starts from."""
        return implementation(StrategySuccesses)(self, None, recipe, episodes, rng)

    def of_policy(self, policy: "Policy", recipe: "Recipe", episodes: int, rng: random.Random) -> list[Sample]:
        return implementation(StrategySuccesses)(self, None if self.model else policy, recipe, episodes, rng)


class StoredSuccesses(Demonstrations):
    """Successful episodes of another run, drawn without replacement; its model must have had the same tokenizer."""

    run: Path
    """Its folder."""
    filters: tuple[Filter, ...] = ()
    """What is imitated of a success: all that was sampled, if there are none."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        check_run_folder(self.run)
        store = TrajectoryStore(self.run / TRAJECTORIES)
        places = [k for k, record in enumerate(store.records) if record.success and not record.stop.failed]
        if not places:
            raise ConfigError(f"{store.path} holds no successful episode to imitate; name the folder of another run")
        chosen = sorted(rng.sample(places, min(episodes, len(places))))
        rewards: dict[TaskKey, list[float]] = {}
        for record in store.records:
            if not record.stop.failed:
                rewards.setdefault(record.task, []).append(record.reward)
        steps = [
            FoundStep(
                t,
                u.prompt_ids,
                u.sampled_ids,
                sum(u.behaviour_logprobs),
                fmean(rewards[t.record().task]),
                u.media,
                u.error,
            )
            for t in store.read(chosen)
            for u in t.turns
            if u.sampled_ids
        ]
        return filtered(steps, self.filters)


class FileSuccesses(Demonstrations):
    """Successful episodes from files of any tool (`rollout.formats`), drawn without replacement. Their words are made
    ids of the policy's and its own context policy makes the prompts, so their model may have had another tokenizer."""

    path: Path
    """A file, or a folder of files."""
    unjudged: bool = False
    """Whether episodes are imitated too of which their file does not say what came of them, as others write them."""

    def samples(self, recipe: "Recipe", chat: "ChatFormat", episodes: int, rng: random.Random) -> list[Sample]:
        found = list(read_episodes(self.path))
        wanted = [f for f in found if (f.trajectory.success if f.judged else self.unjudged) and f.trajectory.turns]
        if not wanted:
            silent = 0 if self.unjudged else sum(not f.judged for f in found)
            hint = f"; of {silent} their files do not say it: set demonstrations.unjudged=true" if silent else ""
            raise ConfigError(
                f"{self.path}: none of its {len(found)} episodes is said to be a success that has a turn{hint}"
            )
        if len(wanted) < episodes:
            warnings.warn(
                f"{self.path} has {len(wanted)} episodes to imitate, and {episodes} were asked for: all are taken",
                LongstrideWarning,
                stacklevel=2,
            )
        chosen = sorted(rng.sample(range(len(wanted)), min(episodes, len(wanted))))
        return [sample for k in chosen for sample in self._of(wanted[k], recipe, chat)]

    def _of(self, found: Found, recipe: "Recipe", chat: "ChatFormat") -> list[Sample]:
        if recipe.actions == "tool_calls" and not found.trajectory.tools:
            raise ConfigError(
                f"{found.place} names no tools, which the recipe's prompts present (actions=tool_calls): set "
                "actions=explained, or demonstrations.type to stored_successes or model_successes"
            )
        return turn_samples(found.trajectory, recipe, chat)


class Cloning(Component):
    """A phase of behaviour cloning before the first iteration: supervised fine-tuning on demonstrations that succeeded.
    It has an optimiser of its own, so `learner.lr` of the recipe is not its rate: `cloning.learner.lr` is, and
    `cloning.learner.epochs` says how many passes it makes."""

    demonstrations: Demonstrations = SolverDemonstrations()
    """What is imitated."""
    episodes: Count = 1000
    """Demonstrated episodes."""
    learner: LearnerConfig = LearnerConfig(batch_samples=64)
    """The optimiser of this phase: a step is of `batch_samples` turns, and in the first `warmup_steps` its rate is
    still lower than `lr`. Where a setting of it is given, those that are not are `LearnerConfig`'s: 128 turns."""

    def __str__(self) -> str:
        own, passes = self.learner, self.learner.epochs
        steps = passes * -(-self.episodes // own.batch_samples)
        return (
            f"{self.episodes} episodes, {passes} pass{'es' * (passes != 1)}, up to {own.batch_samples} turns a step: "
            f"{steps} steps or more where all succeed; rate {own.lr:g} after {own.warmup_steps} steps of warm-up"
        )


class Imitation(Component):
    """Demonstrations in every iteration, in optimiser steps of their own after those of the collected episodes."""

    demonstrations: Demonstrations = SolverDemonstrations()
    """What is imitated."""
    episodes: Count = 32
    """Demonstrated episodes of an iteration."""
    weight: Positive = 1.0
    """Weight of each of their tokens."""


def training_plans(recipe: "Recipe", episodes: int, rng: random.Random) -> list[Plan]:
    """Plans of so many training tasks, under the budget of evaluations."""
    tasks, budget = recipe.tasks.sample(rng, episodes), recipe.test_budget
    seed = rng.getrandbits(62)
    return [Plan(task, k, derive(seed, k), budget.at(1, task.difficulty)) for k, task in enumerate(tasks)]


def own_turns(t: Trajectory, recipe: "Recipe") -> list[int]:
    """Which turns of an episode are imitated: no companion's, and none that was taken over from an earlier episode."""
    return [k for k in range(t.history, t.length) if t.turns[k].speaker not in recipe.companions]


def spent_before(turns: Sequence[Turn], tokens: Sequence[int]) -> list[SpentBudget]:
    """What an episode had spent before each of its turns, which took so many tokens."""
    return [SpentBudget(t, sum(tokens[:t]), sum(u.verb != "answer" for u in turns[:t])) for t in range(len(turns))]


def turn_samples(trajectory: Trajectory, recipe: "Recipe", chat: "ChatFormat") -> list[Sample]:
    """`own_turns` of an episode whose words are known, as the policy would have read and sampled them."""
    if recipe.actions == "tool_calls":
        chat = chat.offering(trajectory.tools)
    turn_ids: list[list[int]] = [chat.encode(turn.text) + chat.close for turn in trajectory.turns]
    turns, known = trajectory.turns, by_placeholder(trajectory.media)
    spent = spent_before(turns, [len(ids) for ids in turn_ids])
    own = own_turns(trajectory, recipe)
    pasts = [
        Past(
            trajectory.task.goal,
            [u.observation for u in turns[: t + 1]],
            turn_ids[:t],
            [u.reward for u in turns[:t]],
            budget=trajectory.budget,
            spent=spent[: t + 1],
            actions=[u.action for u in turns[:t]],
        )
        for t in own
    ]
    prompts = [recipe.context.render(chat, past) for past in pasts]
    return [
        demonstration(prompt, turn_ids[t], 1.0, trajectory.ordinal, placed(prompt, known))
        for t, prompt in zip(own, prompts, strict=True)
    ]

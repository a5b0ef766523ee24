"""Planning: which episodes an iteration plays, in stages, each decided by what those before it came to.

What always holds: ordinals are given in the order in which plans are made, without gaps; members of a group share task,
state and the seed of the environment, and nothing else; the episodes of a trial have ordinals that follow one another,
and a group is of episodes at one place in their trials; a plan depends on the seed of the run, the iteration, earlier
stages and what came before the iteration (`Experience`), and on nothing else. All that is played is an episode of the
iteration, probes too: it is stored and counted.
"""

from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import ClassVar

from longstride.core.budget import Budget
from longstride.core.component import Component
from longstride.core.errors import ConfigError
from longstride.core.experience import Experience
from longstride.core.numbers import Count
from longstride.core.seeds import derive, stream
from longstride.core.task import Task
from longstride.core.trajectory import MEASURED, Trajectory, by_group
from longstride.curriculum.tasks import TaskCurriculum, Tasks
from longstride.methods.replay import Replay
from longstride.rollout.branching import Codec
from longstride.rollout.episode import PastTurn, Plan
from longstride.rollout.trial import Trial

Stages = Generator[Sequence[Plan], list[Trajectory], list[Trajectory]]
"""Yields the plans of a stage, is sent its trajectories in their order, and returns those of the iteration."""


def at_once(plans: Sequence[Plan]) -> Stages:
    """One stage."""
    return (yield plans)


class Planner:
    """Makes the plans of one iteration.

    Args:
        source: where tasks come from.
        curriculum: which of them are drawn.
        experience: what came before the iteration.
        replay: which groups are worth training on.
        budget: the budget of an episode of a task.
        chat: makes ids of texts, and texts of ids.
        seed: of the run.
        iteration: from 1.
        first: ordinal of the first plan.
        episodes: how many the recipe asks for.
        size: how many of them are a group.
        trial: what each of them is a part of.
    """

    def __init__(
        self,
        source: Tasks,
        curriculum: TaskCurriculum,
        experience: Experience,
        replay: Replay,
        budget: Callable[[Task], Budget],
        chat: Codec,
        seed: int,
        iteration: int,
        first: int,
        episodes: int,
        size: int,
        trial: Trial | None = None,
    ) -> None:
        self.source, self.experience, self.chat, self.iteration = source, experience, chat, iteration
        self.trial = trial or Trial()
        self.groups, self.size = episodes // (size * self.trial.episodes), size
        """How many groups the recipe asks for, and of how many episodes; in trials, of how many trials."""
        self.rng = stream(seed, "sampler", iteration)
        """For whatever a sampler draws."""
        self.budget = budget
        """What an episode of a task may take in this iteration, whatever the task's own horizon."""
        self._curriculum, self._replay = curriculum, replay
        self._seed, self._next = seed, first
        self._tasks = stream(seed, "tasks", iteration)

    def tasks(self, n: int) -> list[Task]:
        """`n` training tasks, as the curriculum draws them."""
        return self._curriculum.draw(self.source, n, self._tasks, self.experience)

    def teaches(self, group: Sequence[Trajectory]) -> bool:
        """Whether a group that was played is worth training on, none of whose members failed, as each was rewarded for
        itself (`Replay.teaches`)."""
        return self._replay.teaches([t.record() for t in group])

    def group(
        self,
        task: Task,
        size: int = 0,
        prefix: Sequence[int] = (),
        role: str = "",
        history: Sequence[PastTurn] = (),
        marks: Sequence[Sequence[int]] = (),
        like: Trajectory | None = None,
    ) -> list[Plan]:
        """A new group of `size` episodes (as the recipe says, if left out), named by its first ordinal; see `Plan`. In
        trials: of as many trials as the recipe says, whose episodes at each place are a group. Where `prefix` or
        `history` is what an earlier episode said, `like` is that one: the environment begins as it began there.

        Raises:
            ConfigError: trials would begin otherwise than with their task.
        """
        env_seed = None if like is None else like.seed if like.env_seed is None else like.env_seed
        return self._plans(task, size or self.size, self._next, prefix, role, history, marks, env_seed)

    def more(self, group: Trajectory, size: int, role: str = "") -> list[Plan]:
        """Further episodes of the group of a trajectory, which begin as it began.

        Raises:
            ConfigError: they would be of trials, which begin with their first episodes.
        """
        if self.trial.episodes > 1:
            raise ConfigError("a sampler that adds episodes to a group plays no trials; set trial.episodes=1")
        past = PastTurn.of(group.turns[: group.history])
        return self._plans(group.task, size, group.group, group.prefix, role, past, env_seed=group.env_seed)

    def onward(self, cut: Trajectory, turns: int, role: str = MEASURED) -> Plan:
        """An episode that its turns cut, again and for at most so many `turns` more: a group of its own, in an
        environment of the same seed, where the turns that were taken are taken again. All else of its budget stays.

        Raises:
            ConfigError: it is one of a trial, in which others follow it.
        """
        if self.trial.episodes > 1:
            raise ConfigError("an episode of a trial cannot go on after the next has begun; set trial.episodes=1")
        ordinal, self._next = self._next, self._next + 1
        budget = cut.budget.model_copy(update={"turns": cut.length + turns})
        past, at = PastTurn.of(cut.turns), (ordinal, self.iteration)
        return Plan(cut.task, ordinal, cut.seed, budget, *at, role=role, history=past, env_seed=cut.env_seed)

    def at_most(self, plan: Plan, tokens: int) -> Plan:
        """A plan of a single turn, of which at most so many `tokens` more are sampled than it begins with."""
        most = min(plan.budget.turn_tokens, len(plan.prefix) + tokens)
        return replace(plan, budget=plan.budget.model_copy(update={"turn_tokens": most}))

    def carry_on(self, cut: Trajectory, tokens: int) -> Plan:
        """A single-turn episode whose tokens were cut, from where it was cut and for at most so many `tokens` more. It
        belongs to the same group, and what it may have in all is as the iteration has it.

        Raises:
            ConfigError: it is one of a trial, in which others follow it.
        """
        if self.trial.episodes > 1:
            raise ConfigError("an episode of a trial cannot go on after the next has begun; set trial.episodes=1")
        ordinal, self._next = self._next, self._next + 1
        begun = tuple(cut.turns[-1].ids) if cut.turns else ()
        at = cut.group, self.iteration
        plan = Plan(cut.task, ordinal, cut.seed, self.budget(cut.task), *at, begun, env_seed=cut.env_seed)
        return self.at_most(plan, tokens)

    def is_cut(self, played: Trajectory) -> bool:
        """Whether a single-turn episode ended only because it was planned with fewer tokens than it may have."""
        if played.stop.failed or not played.turns or played.turns[-1].finish != "length":
            return False
        return len(played.turns[-1].ids) < self.budget(played.task).turn_tokens

    def _plans(
        self,
        task: Task,
        size: int,
        group: int,
        prefix: Sequence[int],
        role: str,
        history: Sequence[PastTurn],
        marks: Sequence[Sequence[int]] = (),
        env_seed: int | None = None,
    ) -> list[Plan]:
        length, budget = self.trial.episodes, self.budget(task)
        if length > 1 and (prefix or role or history or marks or size != self.size or env_seed is not None):
            raise ConfigError(
                "a sampler with groups of another size, in roles or from the middle of an episode plays no trials; set "
                "trial.episodes=1"
            )
        first, self._next = self._next, self._next + size * length
        begin = tuple(prefix), role, tuple(history), tuple(map(tuple, marks))
        plans = []
        for n in range(first, self._next):
            place = (n - first) % length
            seed = derive(self._seed, "episode", group + (place if self.trial.start == "new" else 0))
            at = group + place, self.iteration
            after = tuple(range(n - place, n))
            plans.append(Plan(task, n, seed, budget, *at, *begin, self.trial, after, env_seed=env_seed))
        return plans


class Sampler(Component):
    """Family: what is rolled out in an iteration."""

    adaptive: ClassVar[bool] = True
    """Whether what is played depends on what was played before, in this iteration or an earlier one; then nothing is
    rolled out ahead of the update."""

    @abstractmethod
    def plan(self, planner: Planner) -> Stages:
        """The stages of an iteration."""


class Groups(Sampler):
    """As many groups as the recipe asks for, at once."""

    adaptive: ClassVar[bool] = False

    def plan(self, planner: Planner) -> Stages:
        return (yield [plan for task in planner.tasks(planner.groups) for plan in planner.group(task)])


class WithRivals(Sampler):
    """Groups in which a companion plays some of the episodes, whose role is its name: what it says is read and not
    trained, and the reward compares it with what the policy says (`rewards.AgainstRivals`)."""

    adaptive: ClassVar[bool] = False
    companion: str = "earlier"
    """Its name under `companions`."""
    episodes: Count = 4
    """Of each group, that it plays."""

    def plan(self, planner: Planner) -> Stages:
        if self.episodes >= planner.size or planner.trial.episodes > 1:
            raise ConfigError(
                f"with_rivals gives {self.episodes} episodes of each group of {planner.size} to {self.companion!r}: "
                "set sampler.episodes below group_size, and trial.episodes=1"
            )
        groups = [planner.group(task) for task in planner.tasks(planner.groups)]
        mine = planner.size - self.episodes
        return (yield [replace(p, role=self.companion) if n >= mine else p for g in groups for n, p in enumerate(g)])


class DynamicSampling(Sampler):
    """Groups until as many as the recipe asks for teach something (`Replay.teaches`; DAPO, arXiv 2503.14476, section
    3.2). The others are played, stored and counted, and replay leaves them out."""

    rounds: Count = 10
    """Most stages; verl's default."""

    def plan(self, planner: Planner) -> Stages:
        played: list[Trajectory] = []
        lacking = planner.groups
        for _ in range(self.rounds):
            plans = [planner.group(task) for task in planner.tasks(lacking)]
            found = yield [plan for of in plans for plan in of]
            played += found
            teaching = {group[0].group for group in by_group(found) if planner.teaches(group)}
            lacking -= sum(any(plan.group in teaching for plan in of) for of in plans)  # a task of trials has several
            if lacking <= 0:
                break
        return played

"""Planning: which episodes an iteration plays, in stages, each decided by what those before it came to.

What always holds: ordinals are given in the order in which plans are made, without gaps; members of a group share task,
state and the seed of the environment, and nothing else; a plan depends on the seed of the run, the iteration and
earlier stages alone. All that is played is an episode of the iteration, probes too: it is stored and counted.
"""

from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from math import ceil
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from longstride.core.budget import Budget
from longstride.core.component import Component
from longstride.core.seeds import derive, stream
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import TaskSource
from longstride.rollout.episode import Plan

if TYPE_CHECKING:  # the tokenizers behind it take seconds to import
    from longstride.models.chat import ChatFormat

Stages = Generator[Sequence[Plan], list[Trajectory], list[Trajectory]]
"""Yields the plans of a stage, is sent its trajectories in their order, and returns those of the iteration."""
Count = Annotated[int, Field(ge=1)]


def at_once(plans: Sequence[Plan]) -> Stages:
    """One stage."""
    return (yield plans)


class Planner:
    """Makes the plans of one iteration.

    Args:
        source: where tasks come from.
        budget: the budget of an episode of a task.
        chat: makes ids of texts, and texts of ids.
        seed: of the run.
        iteration: from 1.
        first: ordinal of the first plan.
        episodes: how many the recipe asks for.
        size: how many of them are a group.
    """

    def __init__(
        self,
        source: TaskSource,
        budget: Callable[[Task], Budget],
        chat: "ChatFormat",
        seed: int,
        iteration: int,
        first: int,
        episodes: int,
        size: int,
    ) -> None:
        self.source, self.chat, self.iteration = source, chat, iteration
        self.groups, self.size = episodes // size, size
        """How many groups the recipe asks for, and of how many episodes."""
        self.rng = stream(seed, "sampler", iteration)
        """For whatever a sampler draws."""
        self._budget, self._seed, self._next = budget, seed, first
        self._tasks = stream(seed, "tasks", iteration)

    def tasks(self, n: int) -> list[Task]:
        """`n` training tasks, drawn with replacement."""
        return self.source.sample(self._tasks, n)

    def group(self, task: Task, size: int = 0, prefix: Sequence[int] = (), role: str = "") -> list[Plan]:
        """A new group of `size` episodes (as the recipe says, if left out), named by its first ordinal."""
        return self._plans(task, size or self.size, self._next, prefix, role)

    def more(self, group: Trajectory, size: int, role: str = "") -> list[Plan]:
        """Further episodes of the group of a trajectory."""
        return self._plans(group.task, size, group.group, group.prefix, role)

    def _plans(self, task: Task, size: int, group: int, prefix: Sequence[int], role: str) -> list[Plan]:
        first, self._next = self._next, self._next + size
        seed, budget, prefix = derive(self._seed, "episode", group), self._budget(task), tuple(prefix)
        return [Plan(task, n, seed, budget, group, self.iteration, prefix, role) for n in range(first, self._next)]


class Sampler(Component):
    """Family: what is rolled out in an iteration."""

    staged: ClassVar[bool] = True
    """Whether later stages may follow the first; then nothing is rolled out ahead of the update."""

    @abstractmethod
    def stages(self, planner: Planner) -> Stages:
        """The stages of an iteration."""


class Groups(Sampler):
    """As many groups as the recipe asks for, at once."""

    staged: ClassVar[bool] = False

    def stages(self, planner: Planner) -> Stages:
        return (yield [plan for task in planner.tasks(planner.groups) for plan in planner.group(task)])


class DynamicSampling(Sampler):
    """Groups until as many as the recipe asks for are mixed, their rewards not all equal (DAPO, arXiv 2503.14476,
    section 3.2); what teaches nothing is for credit to leave out (`mixed_only`)."""

    rounds: Count = 10
    """Most stages; verl's default."""

    def stages(self, planner: Planner) -> Stages:
        played: list[Trajectory] = []
        lacking = planner.groups
        for _ in range(self.rounds):
            found = yield [plan for task in planner.tasks(lacking) for plan in planner.group(task)]
            played += found
            lacking -= sum(len({t.reward for t in group}) > 1 for group in by_group(found))
            if lacking <= 0:
                break
        return played


class DifficultyAdaptive(Sampler):
    """DARS (arXiv 2508.13755): groups whose first episodes show a hard task get more, so that hard tasks are not
    drowned by those of middling difficulty.

    The sum of |A| over a group of N episodes with accuracy a is N S, S = 2 a (1 - a), for advantages that are not
    divided by a deviation. More are played until it is N / 2, as at a = 1/2 (`equal`), or N (1 - a) (`hardness`).
    """

    target: Literal["equal", "hardness"] = "hardness"
    """What hard tasks are raised to: the paper's equal treatment, or hardness weighted."""
    most: Count = 64
    """Most episodes of a group; the paper has 32 with `equal` and 64 with `hardness`."""

    def extra(self, n: int, solved: int) -> int:
        """How many more for a group of `n` episodes of which `solved` were; a group without any counts as half a
        success."""
        accuracy = max(solved, 0.5) / n
        if accuracy >= 0.5:
            return 0
        each = 2 * accuracy * (1 - accuracy)
        wanted = 0.5 * n if self.target == "equal" else (1 - accuracy) * n
        return max(0, min(ceil((wanted - n * each) / each), self.most - n))

    def stages(self, planner: Planner) -> Stages:
        first = yield [plan for task in planner.tasks(planner.groups) for plan in planner.group(task)]
        more: list[Plan] = []
        for group in by_group(first):
            if extra := self.extra(len(group), sum(t.success for t in group)):
                more += planner.more(group[0], extra)
        return first + (yield more)


def by_group(trajectories: Sequence[Trajectory]) -> list[list[Trajectory]]:
    """The groups, in the order of their first members, without failed episodes; none is empty."""
    groups: dict[int, list[Trajectory]] = {}
    for t in trajectories:
        if not t.stop.failed:
            groups.setdefault(t.group, []).append(t)
    return list(groups.values())

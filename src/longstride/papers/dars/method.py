"""More episodes for groups whose first ones show a hard task (`DifficultyAdaptive`)."""

from math import ceil
from typing import Literal

from longstride.core.numbers import Count
from longstride.core.trajectory import by_group
from longstride.rollout.episode import Plan
from longstride.rollout.planning import Planner, Sampler, Stages


class DifficultyAdaptive(Sampler):
    """Groups whose first episodes show a hard task get more, so that hard tasks are not drowned by those of middling
    difficulty.

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

    def plan(self, planner: Planner) -> Stages:
        first = yield [plan for task in planner.tasks(planner.groups) for plan in planner.group(task)]
        more: list[Plan] = []
        for group in by_group(first):
            if extra := self.extra(len(group), sum(t.success for t in group)):
                more += planner.more(group[0], extra)
        return first + (yield more)

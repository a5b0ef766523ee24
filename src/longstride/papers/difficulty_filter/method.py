"""What online difficulty filtering adds: `Balanced`, `InBand`."""

from collections.abc import Sequence

from longstride.core.numbers import Count, Share
from longstride.core.trajectory import Trajectory
from longstride.methods import GroupRelative, Sample
from longstride.rollout.planning import Planner, Sampler, Stages, by_group

Band = tuple[Share, Share]
BALANCED: Band = (0.25, 0.75)


def in_band(trajectories: Sequence[Trajectory], band: Band) -> list[list[Trajectory]]:
    """The groups whose share of right answers lies in the band, its ends included."""
    groups = by_group(trajectories)
    return [g for g in groups if band[0] <= sum(t.success for t in g) / len(g) <= band[1]]


class Balanced(Sampler):
    """Groups until as many as the recipe asks for are in the band; the others are for credit to leave out."""

    band: Band = BALANCED
    """Least and largest share of right answers."""
    rounds: Count = 4
    """Most stages."""

    def plan(self, planner: Planner) -> Stages:
        played: list[Trajectory] = []
        lacking = planner.groups
        for _ in range(self.rounds):
            found = yield [plan for task in planner.tasks(lacking) for plan in planner.group(task)]
            played += found
            lacking -= len(in_band(found, self.band))
            if lacking <= 0:
                break
        return played


class InBand(GroupRelative):
    """Group-relative credit of the groups in the band."""

    band: Band = BALANCED
    """That of the sampler."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        return super().__call__([t for group in in_band(trajectories, self.band) for t in group])

"""Credit and KL of each attempt of its own, and the measure of what later attempts change."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from longstride.core.numbers import Share, Weight
from longstride.core.trajectory import Trajectory
from longstride.methods import KL, Advantage, Credit, group_advantages
from longstride.methods.advantages import Baseline
from longstride.rewards.attempts import check_attempts, scores
from longstride.rollout.summary import Measure


class AttemptCredit(Credit):
    """Each attempt (a turn) has the advantage of its own reward among the attempts of the same number in its group, and is
    credited with nothing that comes after it: a first attempt is never made worse to leave room for a second.

        R_1 = first * r_1,  R_k = r_k + bonus (r_k - r_{k-1})

    The bonus is for what was corrected, and against what was spoiled. As r_{k-1} lies before attempt k, it has the
    part of a baseline there: in expectation, as the tests measure it, the gradient is that of R_1 plus (1 + bonus)
    times that of r_k. So the bonus says how much a later attempt weighs against the first; what it does beyond that, it
    does to the variance. For `rewards.Attempts` at tasks of one turn; of an episode with one attempt a ConfigError says so.
    """

    first: Share = 1.0
    """Share of the first attempt's own reward that is credited: 0 in the paper's stage I, 1 in stage II."""
    bonus: Weight = 0.0
    """Weight of progress from attempt to attempt, alpha (10 in the paper's stage II)."""
    baseline: Baseline = "leave_one_out"
    """See `group_advantages`."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        for t in played:
            check_attempts(t, 2)
        numbers: dict[tuple[int, int], int] = {}
        groups_N = [numbers.setdefault((t.group, k), len(numbers)) for t in played for k in range(t.length)]
        rewards_N = [reward for t in played for reward in self.rewards(t)]
        advantages = iter(group_advantages(rewards_N, groups_N, self.baseline, "none").tolist())
        return [[next(advantages) for _ in t.turns] for t in played]

    def rewards(self, trajectory: Trajectory) -> list[float]:
        """[T] R of each attempt."""
        r = scores(trajectory)
        return [self.first * r[0], *(b + self.bonus * (b - a) for a, b in pairwise(r))] if r else []


class KLByTurn(KL):
    """A KL term whose weight depends on the turn: stage I holds the first attempt to where it was, and sets the second
    one free."""

    by_turn: Annotated[tuple[Weight, ...], Field(min_length=1)]
    """What `coefficient` is multiplied by in the first turn of an episode, in the second and so on; the last one
    stays."""

    def at(self, turn: int) -> float:
        return self.coefficient * self.by_turn[min(turn, len(self.by_turn) - 1)]


class Gain(Measure):
    """What was earned after the first turn: what later attempts changed."""

    def __call__(self, trajectory: Trajectory) -> float:
        return trajectory.reward - trajectory.turns[0].reward if trajectory.turns else 0.0

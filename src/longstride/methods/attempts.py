"""Credit for several attempts at one task: SCoRe's (Kumar et al., 2024, arXiv 2409.12917).

What always holds: an attempt is a turn, and is credited with its own reward and with nothing that comes after it, so a
first attempt is never made worse to leave room for a second. No torch.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Annotated

from pydantic import Field

from longstride.core.trajectory import Trajectory
from longstride.methods.advantages import Centre, group_advantages
from longstride.methods.base import Credit, Sample


def scores(trajectory: Trajectory) -> list[float]:
    """[T] score of each attempt: what had been earned by then (see `envs.puzzles.Attempts`). The evaluator's verdict
    is the last attempt's."""
    earned = list(accumulate(turn.reward for turn in trajectory.turns))
    return [*earned[:-1], trajectory.reward] if earned else []


class AttemptCredit(Credit):
    """Each attempt has the advantage of its own reward among the attempts of the same number in its group.

        R_1 = first * r_1,  R_k = r_k + bonus (r_k - r_{k-1})

    The bonus is for what was corrected, and against what was spoiled. As r_{k-1} lies before attempt k, it has the
    part of a baseline there: in expectation, as the tests measure it, the gradient is that of R_1 plus (1 + bonus)
    times that of r_k. So the bonus says how much a later attempt weighs against the first; what it does beyond that, it
    does to the variance.
    """

    first: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the first attempt's own reward that is credited: 0 in the paper's stage I, 1 in stage II."""
    bonus: Annotated[float, Field(ge=0)] = 0.0
    """Weight of progress from attempt to attempt, alpha (10 in the paper's stage II)."""
    centre: Centre = "leave_one_out"
    """Baseline; see `group_advantages`."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        played = [t for t in trajectories if not t.stop.failed]
        attempts = [(t, k) for t in played for k in range(t.length)]
        numbers: dict[tuple[int, int], int] = {}
        groups_N = [numbers.setdefault((t.group, k), len(numbers)) for t, k in attempts]
        rewards_N = [reward for t in played for reward in self.rewards(t)]
        advantages_N = group_advantages(rewards_N, groups_N, self.centre, "none")
        return [
            Sample.of(t, turn, [float(a)] * len(turn.sampled_ids))
            for (t, k), a in zip(attempts, advantages_N, strict=True)
            if (turn := t.turns[k]).sampled_ids
        ]

    def rewards(self, trajectory: Trajectory) -> list[float]:
        """[T] R of each attempt."""
        r = scores(trajectory)
        return [self.first * r[0], *(b + self.bonus * (b - a) for a, b in pairwise(r))] if r else []

"""Filtered behaviour cloning: successes are imitated, and nothing else is.

What always holds: no failure, and no turn that could not be parsed, is trained on. No torch.
"""

from collections.abc import Sequence
from typing import Literal

from longstride.core.trajectory import Trajectory, Turn
from longstride.methods.base import Advantage, Credit


class FilteredBC(Credit):
    """Filtered behaviour cloning (TTI, arXiv 2506.07976):

        max_theta  sum over tau with success, sum_t  w_t log pi_theta(a_t | context_t)

    Each turn of a success is a sample, each of its tokens weighs w_t: with w_t = 1 / |a_t| the mean over samples is
    TTI's loss. A turn whose text could not be parsed is never imitated: the reward cannot be owed to what did nothing,
    and cloning it would teach malformed text. TTI clones those too. There is no importance weight, as in TTI: how far
    off-policy it is, replay decides.
    """

    weight: Literal["equal", "by_length"] = "equal"
    """`equal`: all tokens of an update weigh the same, together as much as there are turns. `by_length`: 1 / |a_t|, as
    TTI released it. The mean gradient of log pi(a) over a policy's own actions is 0, that of log pi(a) / |a| is not:
    cloned with itself, a policy then comes to prefer the shorter of two actions where they begin to differ. Turns that
    all carry a long thought hide that."""
    drop_unchanged: bool = False
    """WebGym's repetition filter (arXiv 2601.02439): leaves out turns after which the page looked the same, the last
    turn excepted, since an answer changes no page. An error line makes no difference."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        lengths = [len(turn.sampled_ids) for t in played for turn in t.turns if self._cloned(turn, t)]
        mean = sum(lengths) / max(len(lengths), 1)

        def weight(turn: Turn, trajectory: Trajectory) -> Advantage:
            if not self._cloned(turn, trajectory):
                return None
            return 1 / (len(turn.sampled_ids) if self.weight == "by_length" else mean)

        return [[weight(turn, t) for turn in t.turns] for t in played]

    def _cloned(self, turn: Turn, trajectory: Trajectory) -> bool:
        if not (trajectory.success and turn.sampled_ids and turn.action is not None):
            return False
        return turn.changed or turn is trajectory.turns[-1] or not self.drop_unchanged

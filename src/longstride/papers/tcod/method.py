"""Nothing but what the loss adds: the credit of distillation on what the policy samples."""

from collections.abc import Sequence

from longstride.core.trajectory import Trajectory
from longstride.methods import Advantage, Credit


class NoAdvantage(Credit):
    """Every turn weighs 0, whatever its episode earned: what is trained is the loss's own term, a `KL` to a `Teacher`."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        return [[0.0] * t.length for t in played]

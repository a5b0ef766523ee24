"""Anchors of a KL term that follow the policy."""

from longstride.core.numbers import Count, Share
from longstride.methods.losses import Anchor


class MovingAverage(Anchor):
    """An exponential moving average of the policy."""

    decay: Share = 0.99
    """Share of the old average that is left after an update."""

    def step(self, iteration: int) -> float:
        return 1.0 - self.decay


class Latest(Anchor):
    """The policy as it was at the start of each phase of so many iterations."""

    every: Count
    """Iterations of a phase."""

    def step(self, iteration: int) -> float:
        return float(iteration % self.every == 0)

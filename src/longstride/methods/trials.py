"""Credit over trials: an episode is also paid for what later episodes of its trial earned, so that exploring pays.

What always holds: within a trial of one episode it is the credit that it is made of; a later episode never pays for an
earlier one; failed and unplayed episodes are passed over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from longstride.core.numbers import Share
from longstride.core.trajectory import Trajectory, by_trial
from longstride.methods.advantages import GroupRelative
from longstride.methods.base import Advantage, Credit


class TrialReturn(Credit):
    """Another credit, of episodes whose reward is what they earned and, discounted, what came after them in their
    trial: the objective over a trial of RL^2 (arXiv 1611.02779) and LaMer (arXiv 2512.16848). What came after is earned
    with the last turn."""

    credit: Credit = GroupRelative()
    """What is made of these rewards. A group is of episodes at one place of their trials."""
    discount: Share = 1.0
    """Weight of a reward one episode later."""

    @property
    def estimates(self) -> frozenset[str]:
        return self.credit.estimates

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        return self.credit.advantages(self.returns(played))

    def streams(self, played: Sequence[Trajectory]) -> Mapping[str, Sequence[Sequence[Advantage]]]:
        return self.credit.streams(self.returns(played))

    def targets(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        return self.credit.targets(self.returns(trajectories))

    def returns(self, trajectories: Sequence[Trajectory]) -> list[Trajectory]:
        """The episodes with the return of their trials from each of them on as its reward."""
        returns: dict[int, float] = {}
        for trial in by_trial(trajectories):
            later = 0.0
            for t in reversed(trial):
                later = returns[t.ordinal] = t.reward + self.discount * later
        return [replace(t, reward=returns.get(t.ordinal, t.reward)) for t in trajectories]

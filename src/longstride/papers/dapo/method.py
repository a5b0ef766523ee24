"""A punishment of answers that are too long, and credit without those that the limit cut.

Dynamic sampling is `rollout.DynamicSampling`, which another paper uses too.
"""

from collections.abc import Sequence
from typing import Any

from longstride.core.budget import StopReason
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory
from longstride.methods import Advantage, GroupRelative
from longstride.rewards import TaskReward, Verdict


class SoftOverlong(TaskReward):
    """1 for a right answer and -1 for a wrong one, plus the soft overlong punishment of y tokens (equation 13), with L
    their limit in the episode's budget and C = `cache`:

        0 if y <= L - C,  (L - C - y) / C if L - C < y <= L,  -1 beyond

    An episode is punished for the worst of its turns, L the limit of a turn, or for the sum of its turns where the
    budget limits that too, whichever is lower. In the paper an episode is one turn.
    """

    cache: Count
    """Tokens before the limit over which the punishment rises."""

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        verdict = super().__call__(trajectory, state, seed)
        terms = {"outcome": 1.0 if verdict.success else -1.0, "overlong": self.punishment(trajectory)}
        return Verdict(sum(terms.values()) - trajectory.earned, verdict.success, terms, verdict.evidence)

    def punishment(self, trajectory: Trajectory) -> float:
        """In [-1, 0]; a cut answer is beyond the limit."""
        if trajectory.stop is StopReason.TOKENS:
            return -1.0
        budget = trajectory.budget
        left = [budget.turn_tokens - turn.sampled_tokens for turn in trajectory.turns]
        if budget.tokens:
            left.append(budget.tokens - trajectory.sampled_tokens)
        return min(0.0, max(-1.0, (min(left, default=self.cache) - self.cache) / self.cache))


class OverlongFiltered(GroupRelative):
    """Group-relative credit, without the answers that the limit cut (section 3.4); these count in the mean of their
    group."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        found = super().advantages(played)
        return [[None] * t.length if t.stop is StopReason.TOKENS else a for t, a in zip(played, found, strict=True)]

"""Length: a right answer earns more the shorter it is beside the other right answers of its group (Arora and Zanette,
2025, "Training Language Models to Reason Efficiently", arXiv 2502.04463).

What always holds: a wrong answer earns what it did, whatever its length, and a right one more than that, so brevity is
never bought with a wrong answer. No torch.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import exp
from statistics import fmean, pstdev
from typing import Annotated

from pydantic import Field

from longstride.core.trajectory import Trajectory
from longstride.methods.advantages import EQUAL, GroupRelative
from longstride.methods.base import Credit, Sample


class LengthPenalty(Credit):
    """Group-relative credit for r (1 - weight * sigmoid(z)), where z is how many deviations the episode is longer than
    the mean success of its group, in sampled tokens; 0 where all of them are of one length."""

    weight: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """Largest share of its reward that a success loses (alpha)."""
    credit: GroupRelative = GroupRelative()
    """What is made of the rewards."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        rewards = self.rewards(trajectories)
        return self.credit([replace(t, reward=r) for t, r in zip(trajectories, rewards, strict=True)])

    def rewards(self, trajectories: Sequence[Trajectory]) -> list[float]:
        """[N] what each episode earns."""
        lengths: dict[int, list[int]] = {}
        for t in trajectories:
            if t.success:
                lengths.setdefault(t.group, []).append(t.sampled_tokens)
        return [
            t.reward * (1 - self.weight * _longer(t.sampled_tokens, lengths[t.group])) if t.success else t.reward
            for t in trajectories
        ]


def _longer(length: int, lengths: Sequence[int]) -> float:
    """In (0, 1): how much longer a success is than those of its group; 1/2 is their mean."""
    deviation = pstdev(lengths)
    z = (length - fmean(lengths)) / deviation if deviation >= EQUAL else 0.0
    return 1 / (1 + exp(-z))

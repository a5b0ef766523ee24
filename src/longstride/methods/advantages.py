"""Advantages: how much better an action was than what could be expected, as functions of numbers and as members of
`Credit`.

What always holds: a failed episode is in no group and in no mean; an advantage belongs to sampled tokens alone; a
reward that is its baseline (within `EQUAL`) gives exactly 0, so that nothing is trained on rounding. Episodes are
compared within `Trajectory.group`, turns within (group, state). No torch.

Bias, as the tests measure it. Unbiased: no baseline, `leave_one_out`, a constant scale, a constant length. The gradient
times (n - 1) / n: `mean` over groups of n, `batch` over n episodes of one prompt. Another direction: dividing by a
deviation (the prompts are weighed anew; for binary rewards of one prompt the direction stays), by the length of the
episode; filtering groups.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from longstride.core.numbers import Positive
from longstride.core.trajectory import Trajectory
from longstride.methods.base import Credit

EQUAL = 1e-6
"""Rewards, or a reward and its baseline, that are closer than this are equal."""

Baseline = Literal["mean", "leave_one_out", "batch", "none"]
Normalize = Literal["std", "batch_std", "none"] | Positive


def group_advantages(
    rewards_N: Sequence[float], groups_N: Sequence[int], baseline: Baseline = "mean", normalize: Normalize = "std"
) -> np.ndarray:
    """[N] advantages `(r - baseline) / normalize`.

    Args:
        rewards_N: one a member.
        groups_N: the group of each member, any numbers in any order.
        baseline: what is taken off: the mean of the group (GRPO, arXiv 2402.03300, section 4.1.2), that of the group's
            other members (RLOO, arXiv 2402.14740; a member without others gets 0), the mean of the batch, or nothing.
        normalize: what is divided by: the group's deviation (GRPO), that of all rewards of the batch (arXiv
            2508.08221), a constant, or nothing (Dr.GRPO, arXiv 2503.20783). A deviation has the divisor n, as in GRPO's
            formula; implementations with n - 1 give sqrt((n - 1) / n) times this. One below `EQUAL` divides nothing.
    """
    r = np.asarray(rewards_N, dtype=float)
    if not len(r):
        return r
    size_N, mean_N, std_N = _groups(r, groups_N)
    base_N = {"none": np.zeros_like(r), "batch": np.full_like(r, r.mean())}.get(baseline, mean_N)
    a = np.where(np.abs(r - base_N) < EQUAL, 0.0, r - base_N) if baseline != "none" else r
    if baseline == "leave_one_out":
        a = a * size_N / np.maximum(size_N - 1, 1)  # r - mean of the others
    if isinstance(normalize, str):
        deviation = {"std": std_N, "batch_std": np.full_like(r, r.std()), "none": np.ones_like(r)}[normalize]
        return a / np.where(deviation < EQUAL, 1.0, deviation)
    return a / normalize


def _groups(r: np.ndarray, groups_N: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Size, mean and deviation of each member's group."""
    _, group_N, size_G = np.unique(np.asarray(groups_N, dtype=int), return_inverse=True, return_counts=True)
    mean_N = (np.bincount(group_N, r) / size_G)[group_N]
    std_N = np.sqrt(np.bincount(group_N, (r - mean_N) ** 2) / size_G)[group_N]
    return size_G[group_N], mean_N, std_N


class GroupRelative(Credit):
    """GRPO and its kin: every sampled token has the advantage of its episode among the episodes of its group.

    | method | baseline | normalize |
    |---|---|---|
    | GRPO (arXiv 2402.03300) | `mean` | `std` |
    | Dr.GRPO (arXiv 2503.20783) | `mean` | `none` |
    | RLOO (arXiv 2402.14740), LOOP (arXiv 2502.01600) | `leave_one_out` | `none` |
    | Lite PPO (arXiv 2508.08221) | `mean` | `batch_std` |
    | REINFORCE (Williams 1992) | `none` or `batch` | `none` |
    """

    baseline: Baseline = "mean"
    """What is taken off the reward; see `group_advantages`."""
    normalize: Normalize = "std"
    """What rewards are divided by; see `group_advantages`."""
    length_divisor: Literal["turns"] | Positive = 1.0
    """Divisor of every turn's advantage: a constant k, or the number of turns of its own episode. The latter
    punishes a long failure less than a short one and so teaches to fail slowly (AsyncWebRL, arXiv 2606.05597, where
    k = 10 took its place)."""

    def advantages(self, played: Sequence[Trajectory]) -> list[list[float]]:
        rewards_N, groups_N = [t.reward for t in played], [t.group for t in played]
        advantages_N = group_advantages(rewards_N, groups_N, self.baseline, self.normalize)
        return [[a / self.divisor(t)] * t.length for t, a in zip(played, advantages_N.tolist(), strict=True)]

    def divisor(self, trajectory: Trajectory) -> float:
        """What the advantages of an episode are divided by."""
        return max(trajectory.length, 1) if self.length_divisor == "turns" else self.length_divisor

"""Targets of critics: pure functions of values.

What always holds: nothing here needs a gradient, since targets are computed without one; what the end of an episode
does to a target is already in `discount_B` (see `control.batches`). Before B may stand an axis of runs.
"""

from typing import Literal

from torch import Tensor

from longstride.control.noise import RunNoise

Reduction = Literal["min", "mean", "first"]
"""How the members of an ensemble become one value: the least (clipped double Q, arXiv 1802.09477), the mean, or the
first alone."""


def bellman_target(reward_B: Tensor, discount_B: Tensor, value_B: Tensor) -> Tensor:
    """[B] r + gamma^h m V(s'): one step, n steps, SARSA and maximisation differ only in what V is. With an axis more,
    [B, 1] and [B, N], the same for N equally likely returns."""
    return reward_B + discount_B * value_B


def reduce_ensemble(value_EB: Tensor, reduction: Reduction) -> Tensor:
    """[B...] one value from [E, B...] members."""
    if reduction == "first":
        return value_EB[0]
    return value_EB.amin(0) if reduction == "min" else value_EB.mean(0)


def subsample(value_EB: Tensor, count: int | None, noise: RunNoise) -> Tensor:
    """[count, B...] members, drawn without replacement once per batch (REDQ, arXiv 2101.05982); None keeps all."""
    if count is None or count >= len(value_EB):
        return value_EB
    drawn = noise.permutation(len(value_EB)).movedim(-1, 0)[:count]
    return value_EB.take_along_dim(drawn.reshape(*drawn.shape, *[1] * (value_EB.dim() - drawn.dim())), 0)


def reduce_returns(returns_EN: Tensor, reduction: Reduction) -> Tensor:
    """[B..., N] one distribution from the [E, B..., N] equally likely returns of members: that of the member with the
    least mean, the mean of their quantiles, in order, or that of the first. For N = 1 it is `reduce_ensemble`."""
    if reduction != "min" or returns_EN.shape[-1] == 1:
        return reduce_ensemble(returns_EN, reduction)
    return returns_EN.take_along_dim(returns_EN.mean(-1, keepdim=True).argmin(0, keepdim=True), 0)[0]


def best_returns(returns_BKN: Tensor) -> Tensor:
    """[B, N] the returns of that of K actions whose mean is the highest."""
    if returns_BKN.shape[-2] == 1:
        return returns_BKN.squeeze(-2)
    best_B11 = returns_BKN.mean(-1, keepdim=True).argmax(-2, keepdim=True)
    return returns_BKN.take_along_dim(best_B11, -2).squeeze(-2)

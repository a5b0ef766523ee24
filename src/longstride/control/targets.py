"""Targets of critics: pure functions of values.

What always holds: nothing here needs a gradient, since targets are computed without one; what the end of an episode
does to a target is already in `discount_B` (see `control.batches`).
"""

from typing import Literal

import torch
from torch import Tensor

Reduction = Literal["min", "mean"]
"""How the members of an ensemble become one value: the least (clipped double Q, arXiv 1802.09477), or the mean."""


def bellman_target(reward_B: Tensor, discount_B: Tensor, value_B: Tensor) -> Tensor:
    """[B] r + gamma^h m V(s'): one step, n steps, SARSA and maximisation differ only in what V is."""
    return reward_B + discount_B * value_B


def reduce_ensemble(value_EB: Tensor, reduction: Reduction) -> Tensor:
    """[B...] one value from [E, B...] members."""
    return value_EB.amin(0) if reduction == "min" else value_EB.mean(0)


def subsample(value_EB: Tensor, count: int | None, generator: torch.Generator) -> Tensor:
    """[count, B...] members, drawn without replacement once per batch (REDQ, arXiv 2101.05982); None keeps all."""
    if count is None or count >= len(value_EB):
        return value_EB
    return value_EB[torch.randperm(len(value_EB), generator=generator)[:count]]

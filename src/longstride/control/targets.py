"""Targets of critics: pure functions of values.

What always holds: nothing here has a gradient worth taking: targets are computed without one; what an episode's end
does to a target is in `discount_B` already (see `value.batches`).
"""

from typing import Literal

import torch
from torch import Tensor

Rule = Literal["min", "mean"]
"""How the members of an ensemble become one value: the least (clipped double Q, arXiv 1802.09477), or the mean."""


def bootstrapped(reward_B: Tensor, discount_B: Tensor, value_B: Tensor) -> Tensor:
    """[B] r + gamma^h m V(s'): one step, n steps, SARSA and maximisation differ only in what V is."""
    return reward_B + discount_B * value_B


def agreed(value_EB: Tensor, rule: Rule) -> Tensor:
    """[B...] one value of [E, B...] members."""
    return value_EB.amin(0) if rule == "min" else value_EB.mean(0)


def some(value_EB: Tensor, count: int | None, generator: torch.Generator) -> Tensor:
    """[count, B...] members, drawn without replacement once for the batch (REDQ, arXiv 2101.05982); all if None."""
    if count is None or count >= len(value_EB):
        return value_EB
    return value_EB[torch.randperm(len(value_EB), generator=generator)[:count]]

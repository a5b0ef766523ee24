"""Offline design with linear networks, for which penalties and climbs have a closed form."""

import numpy as np
import torch
from torch import nn

from longstride.exact.designs import Designs

PROBLEM = Designs(pool=60)
RNG = np.random.default_rng(0)


class Linear(nn.Module):
    """A linear map with the leading axis of one network that an `MLP` has."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.weight)[None]


def weight(*shape: int) -> torch.Tensor:
    """Normal numbers, the same for a shape each time."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)

"""Ways to the largest Q of the data that a divergence gives: `ChiSquare`, `TotalVariation`, and XQL's `Gumbel`."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from longstride.control import Maximiser
from longstride.core.numbers import Positive

Lambda = Annotated[float, Field(gt=0, lt=1)]


class ChiSquare(Maximiser):
    """lam max(u + u^2 / 4, 0) - (1 - lam) u, of Pearson's chi-square."""

    lam: Lambda = 0.8
    """The larger, the nearer is V to the largest Q."""

    def __call__(self, ahead_B: Tensor) -> Tensor:
        return self.lam * (ahead_B + ahead_B.square() / 4).relu() - (1 - self.lam) * ahead_B


class TotalVariation(Maximiser):
    """lam max(u, 0) - (1 - lam) u: V is the quantile (2 lam - 1) / lam of Q over the actions of the data."""

    lam: Annotated[float, Field(gt=0.5, lt=1)] = 0.8
    """The larger, the nearer is V to the largest Q."""

    def __call__(self, ahead_B: Tensor) -> Tensor:
        return self.lam * ahead_B.relu() - (1 - self.lam) * ahead_B


class Gumbel(Maximiser):
    """exp(z) - z - 1 with z = u / scale, of the reverse KL (XQL, arXiv 2301.02328): V is scale times the logarithm of the
    mean of exp(Q / scale)."""

    scale: Positive = 1.0
    """beta, in units of the value: the smaller, the nearer is V to the largest Q."""
    most: Positive = 5.0
    """z is cut to it, and has no gradient beyond."""

    def __call__(self, ahead_B: Tensor) -> Tensor:
        z_B = (ahead_B / self.scale).clamp(max=self.most)
        with torch.no_grad():  # the loss of a batch is scaled by its largest z, as in the released code
            largest = z_B.amax(-1, keepdim=True).clamp(min=-1.0)
        return (z_B - largest).exp() - (z_B + 1) * (-largest).exp()

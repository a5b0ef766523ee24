"""Heads: what the outputs of a critic mean, and the loss that moves them toward a target. A target is a value, or a
distribution of returns, given as N equally likely ones.

What always holds: the loss is least where the value is the target, for targets inside the head's range; targets take
no gradient.
"""

import math
from abc import abstractmethod
from typing import Annotated, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor
from torch.nn import functional as F

from longstride.core.component import Component
from longstride.core.numbers import Count, Positive


class Head(Component):
    """Family: the meaning of the last axis of a critic's raw outputs."""

    @property
    def outputs(self) -> int:
        """Size of the last axis."""
        return 1

    @abstractmethod
    def value(self, raw: Tensor) -> Tensor:
        """[...] values of [..., outputs]."""

    def score(self, raw: Tensor) -> Tensor:
        """[...] what a policy is moved to raise, and what actions are compared by; it grows with the value."""
        return self.value(raw)

    @abstractmethod
    def loss(self, raw: Tensor, target: Tensor) -> Tensor:
        """[...] loss of [..., outputs] against [...] targets."""

    def returns(self, raw: Tensor) -> Tensor:
        """[..., N] equally likely returns whose mean is the value: the distribution that outputs stand for. A head of
        values alone has one (N = 1)."""
        return self.value(raw)[..., None]

    def loss_of_returns(self, raw: Tensor, returns: Tensor) -> Tensor:
        """[...] loss of [..., outputs] against [..., N] equally likely returns. A head of values alone is moved toward
        their mean."""
        return self.loss(raw, returns.mean(-1))


class Scalar(Head):
    """The value itself, under the squared error."""

    def value(self, raw: Tensor) -> Tensor:
        return raw[..., 0]

    def loss(self, raw: Tensor, target: Tensor) -> Tensor:
        return (raw[..., 0] - target).square()


class BCE(Head):
    """Values in [0, 1], such as discounted probabilities of success: logits under the binary cross-entropy (SHARSA,
    arXiv 2506.04168). Scores are the logits, which still have a slope where the value is nearly 0 or 1."""

    def value(self, raw: Tensor) -> Tensor:
        return raw[..., 0].sigmoid()

    def score(self, raw: Tensor) -> Tensor:
        return raw[..., 0]

    def loss(self, raw: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(raw[..., 0], target, reduction="none")


class HLGauss(Head):
    """A histogram under the cross-entropy with a Gaussian around the target (Stop Regressing, arXiv 2403.03950).

    Of `bins` equal bins between `low` and `high`, bin i has the probability Phi((z_i+1 - y) / s) - Phi((z_i - y) / s),
    divided by the sum over all bins; the value is the mean of the bins' centres.
    """

    low: float = -10.0
    """Left edge of the first bin."""
    high: float = 10.0
    """Right edge of the last bin; targets are clamped to the range."""
    bins: Annotated[int, Field(ge=2)] = 101
    """How many bins."""
    sigma: Positive = 0.75
    """Deviation of the Gaussian, in widths of a bin."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"high must be above low ({self.low}), got {self.high}")
        return self

    @property
    def outputs(self) -> int:
        return self.bins

    @property
    def width(self) -> float:
        """Of a bin."""
        return (self.high - self.low) / self.bins

    def encode(self, target: Tensor) -> Tensor:
        """[..., bins] probabilities of the bins for [...] targets."""
        edges = torch.linspace(self.low, self.high, self.bins + 1, dtype=target.dtype)
        z = (edges - target.clamp(self.low, self.high)[..., None]) / (self.sigma * self.width * math.sqrt(2))
        below = torch.erf(z)
        return below.diff(dim=-1) / (below[..., -1:] - below[..., :1])

    def decode(self, probability: Tensor) -> Tensor:
        """[...] means of [..., bins] probabilities."""
        half = self.width / 2
        centres = torch.linspace(self.low + half, self.high - half, self.bins, dtype=probability.dtype)
        return probability @ centres

    def value(self, raw: Tensor) -> Tensor:
        return self.decode(raw.softmax(-1))

    def loss(self, raw: Tensor, target: Tensor) -> Tensor:
        return -(self.encode(target) * raw.log_softmax(-1)).sum(-1)


class Atoms(Head):
    """Probabilities of returns that lie at even distances (C51, arXiv 1707.06887), under the cross-entropy; a target
    between two of them is shared out to both, by how near it is."""

    low: float = -10.0
    """The least."""
    high: float = 10.0
    """The greatest; targets are clamped to the range."""
    count: Annotated[int, Field(ge=2)] = 101
    """How many."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"high must be above low ({self.low}), got {self.high}")
        return self

    @property
    def outputs(self) -> int:
        return self.count

    def atoms(self, like: Tensor) -> Tensor:
        """[count] the returns."""
        return torch.linspace(self.low, self.high, self.count, dtype=like.dtype)

    def value(self, raw: Tensor) -> Tensor:
        return raw.softmax(-1) @ self.atoms(raw)

    def shared_out(self, returns: Tensor, chance: Tensor) -> Tensor:
        """[..., count] the probabilities that stand for [..., N] returns of [..., N] probabilities."""
        place = (returns.clamp(self.low, self.high) - self.low) * ((self.count - 1) / (self.high - self.low))
        below = place.floor().clamp(max=self.count - 2)
        above, number = place - below, below.long()
        none = chance.new_zeros(*chance.shape[:-1], self.count)
        return none.scatter_add(-1, number, chance * (1 - above)).scatter_add(-1, number + 1, chance * above)

    def loss(self, raw: Tensor, target: Tensor) -> Tensor:
        goal = self.shared_out(target[..., None], torch.ones_like(target)[..., None])
        return -(goal * raw.log_softmax(-1)).sum(-1)


class Quantiles(Head):
    """The quantiles (i - 1/2) / N of the return, i = 1 to N, under the quantile Huber loss (QR-DQN, arXiv 1710.10044,
    equation 10); the value is their mean."""

    count: Count = 32
    """N."""
    kappa: Positive = 1.0
    """Distance up to which the loss is quadratic, in units of the return."""

    @property
    def outputs(self) -> int:
        return self.count

    def value(self, raw: Tensor) -> Tensor:
        return raw.mean(-1)

    def returns(self, raw: Tensor) -> Tensor:
        return raw

    def loss(self, raw: Tensor, target: Tensor) -> Tensor:
        return self.loss_of_returns(raw, target[..., None])

    def loss_of_returns(self, raw: Tensor, returns: Tensor) -> Tensor:
        """[...] the sum over quantiles of the mean over returns of |share - 1(return < quantile)| * Huber / kappa."""
        share = (torch.arange(self.count, dtype=raw.dtype) + 0.5) / self.count
        error = returns[..., None, :] - raw[..., None]
        size = error.abs()
        huber = torch.where(size <= self.kappa, 0.5 * error**2, self.kappa * (size - 0.5 * self.kappa))
        return ((share[:, None] - (error < 0).float()).abs() * huber / self.kappa).mean(-1).sum(-1)

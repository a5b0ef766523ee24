"""The trained tokens of a micro-batch, as losses see them. No torch."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor

LARGEST_LOG = 20.0
"""Log-ratios are cut here, so that a token that became impossible does not overflow (as in verl)."""


class Tokens(Protocol):
    """The trained tokens of a micro-batch, P of them: a `learner.batching.MicroBatch`."""

    @property
    def streams(self) -> "Mapping[str, Tensor]":
        """By name, (P,) tensors: the streams of the samples (see `methods.base`), of which advantages and the
        coefficients of `Loss.coefficients` are multiplied by the share of the aggregation."""
        ...

    @property
    def sequence_P(self) -> "Tensor":
        """Number of the sample that each token is of."""
        ...

    @property
    def entropy_P(self) -> "Tensor | None":
        """Entropy of the distribution that each token was drawn from, in nats, with gradient, where the loss needs
        it."""
        ...


def sequence_sums(x_P: "Tensor", number_P: "Tensor") -> "Tensor":
    """The sum over each token's sequence, shape (P,)."""
    return x_P.new_zeros(int(number_P.max()) + 1).index_add(0, number_P, x_P)[number_P]

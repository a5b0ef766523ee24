"""The loss of online mirror descent (`MirrorDescent`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from longstride.core.numbers import Weight
from longstride.methods import Reinforce, Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR
from longstride.methods.losses import LossTerms
from longstride.methods.tokens import Tokens, sequence_sums

if TYPE_CHECKING:
    from torch import Tensor


TAU = "mirror_coefficient"
"""Stream of tau, times the share of the aggregation."""


class MirrorDescent(Reinforce):
    """-A log pi + tau / 2 (log pi / old)^2 of a sequence, whose tokens share the square equally.

    Its gradient is that of (A - tau log pi / old)^2 / (2 tau), the paper's objective, up to what does not depend on the
    policy. At the sampling policy it is that of `Reinforce`.
    """

    tau: Weight = 0.5
    """What it costs to leave the policy that sampled."""

    def coefficients(self, samples: Sequence[Sample]) -> dict[str, list[float]]:
        return super().coefficients(samples) | {TAU: [self.tau] * len(samples)}

    def policy_terms(self, logp_P: "Tensor", tokens: Tokens) -> LossTerms:
        number_P, log_ratio_P = tokens.sequence_P, logp_P - tokens.streams[BEHAVIOUR]
        length_P = sequence_sums(logp_P.new_ones(len(logp_P)), number_P)
        square_P = sequence_sums(log_ratio_P, number_P).square() / length_P
        return LossTerms(-tokens.streams[ADVANTAGES] * logp_P + tokens.streams[TAU] / 2 * square_P)

"""Losses of a ratio beside PPO's.

What always holds: as in `methods.losses`. Bias against the exact gradient when the sampler is an older policy, as the
tests measure it: `CISPO` is exact for single-token actions while nothing is clipped; `GSPO` weighs by the geometric
mean of the ratios of a sequence, which is no importance weight. Clips narrower than the rounding of the learner's
arithmetic (`GSPO`) want `learner.dtype = "float32"`.
"""

from typing import TYPE_CHECKING

from longstride.core.numbers import Weight
from longstride.methods.aggregation import Aggregation, Mean
from longstride.methods.base import ADVANTAGES
from longstride.methods.losses import Cap, Floor, RatioLoss, Tokens, clipped, sequence_sums

if TYPE_CHECKING:
    from torch import Tensor


class GSPO(RatioLoss):
    """`PPO` in the ratio of a whole sequence, the geometric mean of its tokens' (arXiv 2507.18071, section 4.1);
    all tokens of a sequence have one advantage and are clipped together.

    The ratio takes its value from the sequence and its gradient from the token (section 4.3).
    """

    aggregation: Aggregation = Mean(over="sequence")
    clip_low: Floor = 3e-4
    """How far below 1 (section 5.1)."""
    clip_high: Weight = 4e-4
    """How far above 1."""

    def _terms(self, logp_P: "Tensor", log_ratio_P: "Tensor", tokens: Tokens) -> "tuple[Tensor, Tensor]":
        here_P, number_P = log_ratio_P.detach(), tokens.sequence_P
        mean_P = sequence_sums(here_P, number_P) / sequence_sums(here_P.new_ones(len(here_P)), number_P)
        ratio_P = (mean_P + log_ratio_P - here_P).exp()
        return clipped(ratio_P, tokens.streams[ADVANTAGES], self.clip_low, self.clip_high, None)


class CISPO(RatioLoss):
    """-sg(clip(rho, min, max)) A log pi (MiniMax-M1, arXiv 2506.13585, section 3.1): no token loses its gradient.
    With a min of 0 it is REINFORCE under truncated importance sampling, token by token."""

    max: Cap = 5.0
    """Largest weight (ScaleRL, arXiv 2510.13786)."""
    min: Floor = 0.0
    """Smallest weight."""

    def _terms(self, logp_P: "Tensor", log_ratio_P: "Tensor", tokens: Tokens) -> "tuple[Tensor, Tensor]":
        ratio_P = log_ratio_P.detach().exp()
        weight_P = ratio_P.clamp(self.min, self.max)
        return -weight_P * tokens.streams[ADVANTAGES] * logp_P, weight_P != ratio_P

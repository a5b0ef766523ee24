"""Losses of a ratio: rho = pi / old, the log-probabilities of the learner against those of the sampler.

What always holds: as in `methods.losses`. The sampler has to sample at temperature 1 and without top-p or top-k:
otherwise the two are different distributions before anything was learnt. Clips narrower than the rounding of the
learner's arithmetic (`GSPO`) want `learner.dtype = "float32"`.

Bias against the exact gradient when the sampler is an older policy, as the tests measure it: `PPO` and `CISPO` are
exact for single-token actions while nothing is clipped; a capped ratio weighs a token by min(pi, cap * old); `GSPO`
weighs by the geometric mean of the ratios of a sequence, which is no importance weight.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from longstride.core.component import Component
from longstride.core.numbers import Share, Weight
from longstride.methods.aggregation import Aggregation, Mean
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, PROXIMAL, Sample
from longstride.methods.losses import Loss, LossTerms
from longstride.methods.tokens import LARGEST_LOG, Tokens, sequence_sums

if TYPE_CHECKING:
    from torch import Tensor

WHOLE = "whole_sequence"
"""Stream of 1 in sequences of which a token is trained, else 0: a ratio of a sequence needs all of its tokens."""
Floor = Share
Cap = Annotated[float, Field(ge=1)]


class ImportanceCorrection(Component):
    """Importance weight of the start of the update against the sampler, w = proximal / behaviour, kept in bounds: what
    decoupled PPO (Hilton et al., arXiv 2110.00641) multiplies the loss by."""

    mode: Literal["truncate", "mask"] = "truncate"
    """What becomes of a weight out of bounds: the bound (truncated importance sampling), or 0 (the token is out)."""
    max: Cap = 2.0
    """Upper bound; verl's default, and 5 for the mask of AsyncWebRL (arXiv 2606.05597)."""
    min: Floor = 0.0
    """Lower bound."""
    level: Literal["token", "sequence"] = "token"
    """Whether w is of a token or the product over its sequence: less bias, more variance."""

    def __call__(self, tokens: Tokens) -> "Tensor":
        """The weights of P tokens."""
        log_w = tokens.streams[PROXIMAL] - tokens.streams[BEHAVIOUR]
        if self.level == "sequence":
            log_w = sequence_sums(log_w, tokens.sequence_P)
        w = log_w.clamp(-LARGEST_LOG, LARGEST_LOG).exp()
        return w.clamp(self.min, self.max) if self.mode == "truncate" else w * ((w >= self.min) & (w <= self.max))


class RatioLoss(Loss):
    """Family of losses in rho = pi / old."""

    aggregation: Aggregation = Mean()
    correction: ImportanceCorrection | None = None
    """None: the old policy is the one that sampled. Given (decoupled): it is the one at the start of the update, and
    what lies between the two is this weight, which clipping does not touch. For samples of several versions."""

    reads_sampler = True

    @property
    def needs(self) -> frozenset[str]:
        return super().needs | (frozenset() if self.correction is None else {PROXIMAL})

    @property
    def of_sequences(self) -> bool:
        """Whether a ratio or a weight is of all tokens of a sequence, those of advantage 0 included."""
        return self.correction is not None and self.correction.level == "sequence"

    def coefficients(self, samples: Sequence[Sample]) -> dict[str, list[float]]:
        whole = {WHOLE: [float(any(s.advantages)) for s in samples]} if self.of_sequences else {}
        return super().coefficients(samples) | whole

    def policy_terms(self, logp_P: "Tensor", tokens: Tokens) -> LossTerms:
        old_P = tokens.streams[BEHAVIOUR if self.correction is None else PROXIMAL]
        log_ratio_P = (logp_P - old_P).clamp(-LARGEST_LOG, LARGEST_LOG)
        loss_P, clipped_P = self._terms(logp_P, log_ratio_P, tokens)
        if self.correction is not None:
            loss_P = loss_P * self.correction(tokens)
        return LossTerms(loss_P, log_ratio_P.detach(), clipped_P)

    @abstractmethod
    def _terms(self, logp_P: "Tensor", log_ratio_P: "Tensor", tokens: Tokens) -> "tuple[Tensor, Tensor]":
        """Loss terms before the correction, and where the ratio was cut."""


class PPO(RatioLoss):
    """max(-A rho, -A clip(rho, 1 - clip_low, 1 + clip_high)) (Schulman et al., arXiv 1707.06347, equation 7).

    `clip_high` above `clip_low` is DAPO's clip-higher (arXiv 2503.14476, section 3.1): 0.2 and 0.28.
    """

    clip_low: Floor = 0.2
    """How far below 1 a ratio may pull."""
    clip_high: Weight = 0.2
    """How far above 1."""
    dual_clip: Annotated[float, Field(gt=1)] | None = None
    """Bound on rho where A < 0, which the other clip leaves open (dual clip, arXiv 1912.09729: 3)."""

    def _terms(self, logp_P: "Tensor", log_ratio_P: "Tensor", tokens: Tokens) -> "tuple[Tensor, Tensor]":
        return clipped(log_ratio_P.exp(), tokens.streams[ADVANTAGES], self.clip_low, self.clip_high, self.dual_clip)


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

    @property
    def of_sequences(self) -> bool:
        return True

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


def clipped(
    ratio_P: "Tensor", advantage_P: "Tensor", low: float, high: float, dual: float | None
) -> "tuple[Tensor, Tensor]":
    """PPO's terms, and where they have no gradient."""
    free_P, bound_P = -advantage_P * ratio_P, -advantage_P * ratio_P.clamp(1 - low, 1 + high)
    loss_P, clipped_P = free_P.maximum(bound_P), bound_P > free_P
    if dual is not None:
        most_P = -advantage_P * dual
        over_P = (advantage_P < 0) & (loss_P > most_P)
        loss_P, clipped_P = loss_P.where(~over_P, most_P), clipped_P | over_P
    return loss_P, clipped_P

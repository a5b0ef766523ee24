"""Policy losses: the log-probabilities of sampled tokens and their advantages become loss terms.

What always holds: where current and old policy agree (ratio 1) every loss has the gradient of `Reinforce`; c > 0 times
the advantage is c times the loss, so that an aggregation may multiply advantages; a term depends on the tokens of its
own sequence only, and a sequence is one sample (a turn), which is never cut; a token of weight 0 is not there, unless
it is held to a reference (`KL`). Formulas are methods of the tensors that come in, so a recipe is read without torch.

A ratio compares log-probabilities of the learner with those of the sampler, which has to sample at temperature 1 and
without top-p or top-k: otherwise the two are different distributions before anything was learnt. Clips narrower than
the rounding of the learner's arithmetic (`GSPO`) want `learner.dtype = "float32"`.

Bias against the exact gradient when the sampler is an older policy, as the tests measure it: `PPO` and `CISPO` are
exact for single-token actions while nothing is clipped; a capped ratio weighs a token by min(pi, cap * old);
`Reinforce` ignores the difference; `GSPO` weighs by the geometric mean of the ratios of a sequence, which is no
importance weight. The bias of each estimate of the divergence from a reference stands at `KL`.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

from pydantic import Field

from longstride.core.component import Component
from longstride.core.numbers import Share, Weight
from longstride.methods.aggregation import Aggregation, Constant, Mean
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, PROXIMAL, REFERENCE, Sample

if TYPE_CHECKING:
    from torch import Tensor

LARGEST_LOG = 20.0
"""Log-ratios are cut here, so that a token that became impossible does not overflow (as in verl)."""

KL_COEFFICIENT = "kl_coefficient"
"""Stream of the weight of the KL term, times the share of the aggregation."""
ENTROPY_COEFFICIENT = "entropy_coefficient"
"""Stream of the weight of the entropy bonus, likewise."""

Floor = Share
Cap = Annotated[float, Field(ge=1)]


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


@dataclass(slots=True)
class LossTerms:
    """What a loss makes of P tokens."""

    loss_P: "Tensor"
    """To be summed and divided by the aggregation's denominator."""
    log_ratio_P: "Tensor | None" = None
    """log pi - log old, without gradient."""
    clipped_P: "Tensor | None" = None
    """Where the ratio was cut: the token has no gradient (`PPO`, `ratios.GSPO`) or a smaller one (`ratios.CISPO`)."""
    metrics: "dict[str, Tensor]" = field(default_factory=dict)
    """By name, (P,) tensors without gradient whose means over tokens are logged."""


class PolicyDrift:
    """How far the policy is from the old one and from the reference, added up over micro-batches."""

    def __init__(self) -> None:
        self.tokens = 0
        self._clipped = self._old = self._largest = 0.0
        self._sums: dict[str, float] = {}

    def add(self, terms: LossTerms) -> None:
        """Takes in the tokens of a micro-batch."""
        self.tokens += len(terms.loss_P)
        if terms.log_ratio_P is not None and terms.clipped_P is not None:
            ratio_P = terms.log_ratio_P.exp()
            self._clipped += terms.clipped_P.sum().item()
            self._old += (ratio_P - 1 - terms.log_ratio_P).sum().item()
            self._largest = max(self._largest, ratio_P.max().item())
        for name, value_P in terms.metrics.items():
            self._sums[name] = self._sums.get(name, 0.0) + value_P.sum().item()

    def metrics(self) -> dict[str, float]:
        """The means of `LossTerms.metrics`; and, where the loss has a ratio, `clip_fraction`, `approx_kl` (mean of rho
        - 1 - log rho: it estimates KL(old || new) and is never negative) and `ratio_max`."""
        found = {name: total / self.tokens for name, total in self._sums.items()}
        if self._largest:
            found |= {
                "clip_fraction": self._clipped / self.tokens,
                "approx_kl": self._old / self.tokens,
                "ratio_max": self._largest,
            }
        return found


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


class Anchor(Component):
    """Family: which policy a KL term holds on to, as training goes on. The start of the run at first. Anchors that move
    are in `methods.anchors`."""

    @abstractmethod
    def step(self, iteration: int) -> float:
        """How far the reference moves toward the policy after the update of an iteration: 0 not at all, 1 all the
        way."""


class Start(Anchor):
    """The policy that the run began with, for ever."""

    def step(self, iteration: int) -> float:
        return 0.0


class KL(Component):
    """What it costs to go away from a reference policy: a coefficient times an estimate of KL(policy || reference) from
    the one token, or the one sequence, that was sampled (Schulman, "Approximating KL divergence", 2020).

    With d = log reference - log policy, as the tests measure it on what the policy itself sampled:

    | estimator | value | mean of the value | mean of the gradient |
    |---|---|---|---|
    | `k1` | -d, of either sign | the divergence | 0: it holds nothing |
    | `k2` | d^2 / 2 | another number | that of the divergence |
    | `k3` | exp(d) - 1 - d, never negative | the divergence | that of the divergence the other way round |
    | `k3+` | that of k3 | as k3 | as k2 |

    At `level` token all of it is of one token given what stands before it: what a token does to the divergence of later
    ones is left out. At `level` sequence d is the sum over a sequence, all of it is of the sequence's distribution, and
    nothing is left out. Samples of an older policy are not weighed anew.
    """

    coefficient: Weight = 1e-3
    """Weight beside advantages (1e-3 in verl and SkyRL where it is on, 0.04 in DeepSeekMath)."""
    estimator: Literal["k1", "k2", "k3", "k3+"] = "k3"
    """See above."""
    level: Literal["token", "sequence"] = "token"
    """What an estimate is of. That of a sequence is spread evenly over its tokens."""
    anchor: Anchor = Start()
    """What the reference is."""

    def at(self, turn: int) -> float:
        """The coefficient in a turn, counted from 0."""
        return self.coefficient

    def __call__(self, logp_P: "Tensor", tokens: Tokens) -> "tuple[Tensor, Tensor]":
        """The estimates of P tokens, with gradient, and k3, without."""
        d_P, length_P = tokens.streams[REFERENCE] - logp_P, logp_P.new_ones(len(logp_P))
        if self.level == "sequence":
            d_P, length_P = sequence_sums(d_P, tokens.sequence_P), sequence_sums(length_P, tokens.sequence_P)
        d_P = d_P.clamp(-LARGEST_LOG, LARGEST_LOG)
        k2_P, k3_P = d_P.square() / 2, d_P.exp() - 1 - d_P
        estimates = {"k1": -d_P, "k2": k2_P, "k3": k3_P, "k3+": k3_P.detach() + k2_P - k2_P.detach()}
        return estimates[self.estimator] / length_P, k3_P.detach() / length_P


class Loss(Component):
    """Family: what an optimiser step minimises."""

    aggregation: Aggregation
    """How tokens become a number."""
    kl: KL | None = None
    """What it costs to go away from a reference; nothing if left out."""
    entropy: Weight = 0.0
    """Weight of the entropy bonus: of the entropy of each token's distribution, beside advantages. Its gradient is that
    of each token given what stands before it; what a token does to the entropy of later ones is left out."""

    @property
    def needs(self) -> frozenset[str]:
        """The streams that the loss reads beside those of sampling. The learner makes `PROXIMAL` and `REFERENCE` before
        an update, each by a forward pass over everything; any other has to come from the credit."""
        return frozenset({REFERENCE} if self.kl is not None else ())

    def coefficients(self, samples: Sequence[Sample]) -> dict[str, list[float]]:
        """By stream, the weight of a further term in each sample. A token is trained where its advantage or one of
        these is not 0."""
        found = {}
        if self.kl is not None:
            found[KL_COEFFICIENT] = [self.kl.at(s.turn) for s in samples]
        if self.entropy:
            found[ENTROPY_COEFFICIENT] = [self.entropy] * len(samples)
        return found

    def reweigh(self, samples: Sequence[Sample], logprobs: Sequence[Sequence[float]]) -> Sequence[Sample]:
        """The samples of an optimiser step with advantages that depend on the policy as it is now.

        Called before every step where `depends_on_policy` is set: for losses of several sequences, whose gradient is
        that of `Reinforce` with such advantages (see `methods.preferences`).
        """
        return samples

    @property
    def depends_on_policy(self) -> bool:
        """Whether `reweigh` has something to do; it costs a forward pass for each step."""
        return False

    def __call__(self, logp_P: "Tensor", tokens: Tokens) -> LossTerms:
        """The loss terms.

        Args:
            logp_P: log pi of the tokens, with gradient.
            tokens: what else is known of them.
        """
        terms = self.policy_terms(logp_P, tokens)
        if self.kl is not None:
            estimate_P, kl_P = self.kl(logp_P, tokens)
            terms.loss_P = terms.loss_P + tokens.streams[KL_COEFFICIENT] * estimate_P
            terms.metrics["kl"] = kl_P
        if self.entropy:
            assert tokens.entropy_P is not None
            terms.loss_P = terms.loss_P - tokens.streams[ENTROPY_COEFFICIENT] * tokens.entropy_P
            terms.metrics["entropy"] = tokens.entropy_P.detach()
        return terms

    @abstractmethod
    def policy_terms(self, logp_P: "Tensor", tokens: Tokens) -> LossTerms:
        """The loss terms without the KL term and the entropy bonus."""


class Reinforce(Loss):
    """-A log pi: REINFORCE (Williams 1992), and with any weights for advantages a weighted log-likelihood. Filtered
    behaviour cloning is this with 1 / |a| for A, in the mean over samples, which is the default."""

    aggregation: Aggregation = Constant()

    def policy_terms(self, logp_P: "Tensor", tokens: Tokens) -> LossTerms:
        return LossTerms(-tokens.streams[ADVANTAGES] * logp_P)


class RatioLoss(Loss):
    """Family of losses in rho = pi / old."""

    aggregation: Aggregation = Mean()
    correction: ImportanceCorrection | None = None
    """None: the old policy is the one that sampled. Given (decoupled): it is the one at the start of the update, and
    what lies between the two is this weight, which clipping does not touch. For samples of several versions."""

    @property
    def needs(self) -> frozenset[str]:
        return super().needs | (frozenset() if self.correction is None else {PROXIMAL})

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


def sequence_sums(x_P: "Tensor", number_P: "Tensor") -> "Tensor":
    """The sum over each token's sequence, shape (P,)."""
    return x_P.new_zeros(int(number_P.max()) + 1).index_add(0, number_P, x_P)[number_P]

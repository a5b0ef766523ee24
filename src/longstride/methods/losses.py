"""Policy losses: the log-probabilities of sampled tokens and their advantages become loss terms.

What always holds: where current and old policy agree (ratio 1) every loss has the gradient of `Reinforce`; c > 0 times
the advantage is c times the loss, so that an aggregation may multiply advantages; a term depends on the tokens of its
own sequence only, and a sequence is one sample (a turn), which is never cut; a token of weight 0 is not there, unless
it is held to a reference (`KL`). Formulas are methods of the tensors that come in, so a recipe is read without torch.

Losses of a ratio are in `ratios`, losses of pairs in `preferences`. `Reinforce` ignores the difference where the
sampler is an older policy. The bias of each estimate of the divergence from a reference stands at `kl.KL`.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from longstride.core.component import Component
from longstride.core.numbers import Weight
from longstride.methods.aggregation import Aggregation, Constant
from longstride.methods.base import ADVANTAGES, REFERENCE, Sample
from longstride.methods.kl import KL, Anchor
from longstride.methods.tokens import Tokens

if TYPE_CHECKING:
    from torch import Tensor

KL_COEFFICIENT = "kl_coefficient"
"""Stream of the weight of the KL term, times the share of the aggregation."""
ENTROPY_COEFFICIENT = "entropy_coefficient"
"""Stream of the weight of the entropy bonus, likewise."""


@dataclass(slots=True)
class LossTerms:
    """What a loss makes of P tokens."""

    loss_P: "Tensor"
    """To be summed and divided by the aggregation's denominator."""
    log_ratio_P: "Tensor | None" = None
    """log pi - log old, without gradient."""
    clipped_P: "Tensor | None" = None
    """Where the ratio was cut: the token has no gradient (`PPO`, `GSPO`) or a smaller one (`CISPO`)."""
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

    def join(self, other: "PolicyDrift") -> None:
        """Takes in all that another one took in."""
        self.tokens += other.tokens
        self._clipped += other._clipped
        self._old += other._old
        self._largest = max(self._largest, other._largest)
        for name, total in other._sums.items():
            self._sums[name] = self._sums.get(name, 0.0) + total

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


class Loss(Component):
    """Family: what an optimiser step minimises."""

    aggregation: Aggregation
    """How tokens become a number."""
    kl: KL | None = None
    """What it costs to go away from a reference; nothing if left out."""
    entropy: Weight = 0.0
    """Weight of the entropy bonus: of the entropy of each token's distribution, beside advantages. Its gradient is that
    of each token given what stands before it; what a token does to the entropy of later ones is left out."""

    reads_sampler: ClassVar[bool] = False
    """Whether it compares the policy with the distribution that was sampled from."""

    @property
    def needs(self) -> frozenset[str]:
        """The streams that the loss reads beside those of sampling. The learner makes `PROXIMAL`, `REFERENCE` and
        `ANCHOR` before an update, each by a forward pass over everything; any other has to come from the credit."""
        return frozenset({REFERENCE} if self.kl is not None else ())

    @property
    def anchors(self) -> Mapping[str, Anchor]:
        """How the policies behind `REFERENCE` and `ANCHOR` move; what is left out stays as it was at the start."""
        return {} if self.kl is None else {REFERENCE: self.kl.anchor}

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

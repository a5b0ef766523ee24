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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from pydantic import Field

from longstride.core.component import Component
from longstride.methods.aggregation import Aggregation, Constant, Mean

if TYPE_CHECKING:
    from torch import Tensor

LARGEST_LOG = 20.0
"""Log-ratios are cut here, so that a token that became impossible does not overflow (as in verl)."""

Cap = Annotated[float, Field(ge=1)]
Floor = Annotated[float, Field(ge=0, le=1)]
Above = Annotated[float, Field(ge=0)]


class Tokens(Protocol):
    """The trained tokens of a micro-batch, P of them: a `learner.batching.MicroBatch`."""

    weight_P: "Tensor"
    """Advantage times the share of its aggregation."""
    behaviour_P: "Tensor"
    """Log-probability under the policy that sampled the token."""
    proximal_P: "Tensor"
    """Log-probability under the weights at the start of the update, where the loss asks for it."""
    sequence_P: "Tensor"
    """Number of the sample that the token is of."""
    reference_P: "Tensor"
    """Log-probability under the reference, where the loss has a KL term."""
    penalty_P: "Tensor"
    """Coefficient of the KL term times the share of its aggregation."""


@dataclass(slots=True)
class Terms:
    """What a loss makes of P tokens."""

    loss_P: "Tensor"
    """To be summed and divided by the aggregation's denominator."""
    log_ratio_P: "Tensor | None" = None
    """log pi - log old, without gradient."""
    clipped_P: "Tensor | None" = None
    """Where the ratio was cut: the token has no gradient (`PPO`, `GSPO`) or a smaller one (`CISPO`)."""
    kl_P: "Tensor | None" = None
    """k3 against the reference, without gradient."""


class Drift:
    """How far the policy is from the old one and from the reference, added up over micro-batches."""

    def __init__(self) -> None:
        self.tokens = 0
        self._clipped = self._old = self._largest = 0.0
        self._reference: float | None = None

    def add(self, terms: Terms) -> None:
        """Takes in the tokens of a micro-batch."""
        self.tokens += len(terms.loss_P)
        if terms.log_ratio_P is not None and terms.clipped_P is not None:
            ratio_P = terms.log_ratio_P.exp()
            self._clipped += terms.clipped_P.sum().item()
            self._old += (ratio_P - 1 - terms.log_ratio_P).sum().item()
            self._largest = max(self._largest, ratio_P.max().item())
        if terms.kl_P is not None:
            self._reference = (self._reference or 0.0) + terms.kl_P.sum().item()

    def metrics(self) -> dict[str, float]:
        """`clip_fraction`, `approx_kl` (mean of rho - 1 - log rho: it estimates KL(old || new) and is never
        negative) and `ratio_max` where the loss has a ratio; `kl` (mean of k3) where it has a reference."""
        found = {} if self._reference is None else {"kl": self._reference / self.tokens}
        if self._largest:
            found |= {
                "clip_fraction": self._clipped / self.tokens,
                "approx_kl": self._old / self.tokens,
                "ratio_max": self._largest,
            }
        return found


class Correction(Component):
    """Importance weight of the start of the update against the sampler, w = proximal / behaviour, kept in bounds: what
    decoupled PPO (Hilton et al., arXiv 2110.00641) multiplies the loss by."""

    beyond: Literal["truncate", "mask"] = "truncate"
    """What becomes of a weight out of bounds: the bound (truncated importance sampling), or 0 (the token is out)."""
    cap: Cap = 2.0
    """Upper bound; verl's default, and 5 for the mask of AsyncWebRL (arXiv 2606.05597)."""
    floor: Floor = 0.0
    """Lower bound."""
    level: Literal["token", "sequence"] = "token"
    """Whether w is of a token or the product over its sequence: less bias, more variance."""

    def __call__(self, tokens: Tokens) -> "Tensor":
        """The weights of P tokens."""
        log_w = tokens.proximal_P - tokens.behaviour_P
        if self.level == "sequence":
            log_w = _sums(log_w, tokens.sequence_P)
        w = log_w.clamp(-LARGEST_LOG, LARGEST_LOG).exp()
        return w.clamp(self.floor, self.cap) if self.beyond == "truncate" else w * ((w >= self.floor) & (w <= self.cap))


class KL(Component):
    """What it costs to go away from a reference policy, token by token: a coefficient times an estimate of KL(policy ||
    reference) from the one token that was sampled (Schulman, "Approximating KL divergence", 2020).

    With d = log reference - log policy, as the tests measure it on what the policy itself sampled:

    | estimator | value | mean of the value | mean of the gradient |
    |---|---|---|---|
    | `k1` | -d, of either sign | the divergence | 0: it holds nothing |
    | `k2` | d^2 / 2 | another number | that of the divergence |
    | `k3` | exp(d) - 1 - d, never negative | the divergence | that of the divergence the other way round |
    | `k3+` | that of k3 | as k3 | as k2 |

    All of it is of one token given what stands before it: what a token does to the divergence of later ones is left
    out, and samples of an older policy are not weighed anew.
    """

    coefficient: Above = 1e-3
    """Weight beside advantages (1e-3 in verl and SkyRL where it is on, 0.04 in DeepSeekMath)."""
    estimator: Literal["k1", "k2", "k3", "k3+"] = "k3"
    """See above."""
    by_turn: tuple[Above, ...] = ()
    """In place of `coefficient`, that of the first turn of an episode, of the second and so on; the last one stays.
    Stage I of SCoRe (arXiv 2409.12917) holds the first attempt to where it was, and sets the second one free."""

    def at(self, turn: int) -> float:
        """The coefficient in a turn, counted from 0."""
        return self.by_turn[min(turn, len(self.by_turn) - 1)] if self.by_turn else self.coefficient

    def __call__(self, logp_P: "Tensor", reference_P: "Tensor") -> "tuple[Tensor, Tensor]":
        """The estimates of P tokens, with gradient, and k3, without."""
        d_P = (reference_P - logp_P).clamp(-LARGEST_LOG, LARGEST_LOG)
        k2_P, k3_P = d_P.square() / 2, d_P.exp() - 1 - d_P
        estimates = {"k1": -d_P, "k2": k2_P, "k3": k3_P, "k3+": k3_P.detach() + k2_P - k2_P.detach()}
        return estimates[self.estimator], k3_P.detach()


class Loss(Component):
    """Family: what an optimiser step minimises."""

    aggregation: Aggregation
    """How tokens become a number."""
    kl: KL | None = None
    """What it costs to go away from a reference; nothing if left out."""

    @property
    def proximal(self) -> bool:
        """Whether `Tokens.proximal_P` is read: it costs a forward pass over everything at the start of an update."""
        return False

    def penalties(self, samples: Sequence[Any]) -> list[float]:
        """Coefficient of the KL term of each sample's tokens (see `KL.by_turn`); empty where there is no such term."""
        return [self.kl.at(s.turn) for s in samples] if self.kl is not None else []

    def __call__(self, logp_P: "Tensor", tokens: Tokens) -> Terms:
        """The loss terms.

        Args:
            logp_P: log pi of the tokens, with gradient.
            tokens: what else is known of them.
        """
        terms = self._policy(logp_P, tokens)
        if self.kl is None:
            return terms
        estimate_P, kl_P = self.kl(logp_P, tokens.reference_P)
        return replace(terms, loss_P=terms.loss_P + tokens.penalty_P * estimate_P, kl_P=kl_P)

    @abstractmethod
    def _policy(self, logp_P: "Tensor", tokens: Tokens) -> Terms:
        """The loss terms without the KL term."""


class Reinforce(Loss):
    """-A log pi: REINFORCE (Williams 1992), and with weights for advantages any weighted log-likelihood. Filtered
    behaviour cloning is this with 1 / |a| for A, in the mean over samples, which is the default."""

    aggregation: Aggregation = Constant()

    def _policy(self, logp_P: "Tensor", tokens: Tokens) -> Terms:
        return Terms(-tokens.weight_P * logp_P)


class RatioLoss(Loss):
    """Family of losses in rho = pi / old."""

    aggregation: Aggregation = Mean()
    correction: Correction | None = None
    """None: the old policy is the one that sampled. Given (decoupled): it is the one at the start of the update, and
    what lies between the two is this weight, which clipping does not touch. For samples of several versions."""

    @property
    def proximal(self) -> bool:
        return self.correction is not None

    def _policy(self, logp_P: "Tensor", tokens: Tokens) -> Terms:
        old_P = tokens.behaviour_P if self.correction is None else tokens.proximal_P
        log_ratio_P = (logp_P - old_P).clamp(-LARGEST_LOG, LARGEST_LOG)
        loss_P, clipped_P = self._terms(logp_P, log_ratio_P, tokens)
        if self.correction is not None:
            loss_P = loss_P * self.correction(tokens)
        return Terms(loss_P, log_ratio_P.detach(), clipped_P)

    @abstractmethod
    def _terms(self, logp_P: "Tensor", log_ratio_P: "Tensor", tokens: Tokens) -> "tuple[Tensor, Tensor]":
        """Loss terms before the correction, and where the ratio was cut."""


class PPO(RatioLoss):
    """max(-A rho, -A clip(rho, 1 - low, 1 + high)) (Schulman et al., arXiv 1707.06347, equation 7).

    `high` above `low` is DAPO's clip-higher (arXiv 2503.14476, section 3.1): 0.2 and 0.28.
    """

    low: Floor = 0.2
    """How far below 1 a ratio may pull."""
    high: Above = 0.2
    """How far above 1."""
    dual: Annotated[float, Field(gt=1)] | None = None
    """Bound on rho where A < 0, which the other clip leaves open (dual clip, arXiv 1912.09729: 3)."""

    def _terms(self, logp_P: "Tensor", log_ratio_P: "Tensor", tokens: Tokens) -> "tuple[Tensor, Tensor]":
        return _clipped(log_ratio_P.exp(), tokens.weight_P, self.low, self.high, self.dual)


class GSPO(RatioLoss):
    """`PPO` in the ratio of a whole sequence, the geometric mean of its tokens' (arXiv 2507.18071, section 4.1);
    all tokens of a sequence have one advantage and are clipped together.

    The ratio takes its value from the sequence and its gradient from the token (section 4.3).
    """

    aggregation: Aggregation = Mean(over="sequence")
    low: Floor = 3e-4
    """How far below 1 (section 5.1)."""
    high: Above = 4e-4
    """How far above 1."""

    def _terms(self, logp_P: "Tensor", log_ratio_P: "Tensor", tokens: Tokens) -> "tuple[Tensor, Tensor]":
        here_P, number_P = log_ratio_P.detach(), tokens.sequence_P
        mean_P = _sums(here_P, number_P) / _sums(here_P.new_ones(len(here_P)), number_P)
        return _clipped((mean_P + log_ratio_P - here_P).exp(), tokens.weight_P, self.low, self.high, None)


class CISPO(RatioLoss):
    """-sg(clip(rho, floor, cap)) A log pi (MiniMax-M1, arXiv 2506.13585, section 3.1): no token loses its gradient.
    Without a floor it is REINFORCE under truncated importance sampling, token by token."""

    cap: Cap = 5.0
    """Largest weight (ScaleRL, arXiv 2510.13786)."""
    floor: Floor = 0.0
    """Smallest weight."""

    def _terms(self, logp_P: "Tensor", log_ratio_P: "Tensor", tokens: Tokens) -> "tuple[Tensor, Tensor]":
        ratio_P = log_ratio_P.detach().exp()
        weight_P = ratio_P.clamp(self.floor, self.cap)
        return -weight_P * tokens.weight_P * logp_P, weight_P != ratio_P


def _clipped(
    ratio_P: "Tensor", weight_P: "Tensor", low: float, high: float, dual: float | None
) -> "tuple[Tensor, Tensor]":
    """PPO's terms, and where they have no gradient."""
    free_P, bound_P = -weight_P * ratio_P, -weight_P * ratio_P.clamp(1 - low, 1 + high)
    loss_P, clipped_P = free_P.maximum(bound_P), bound_P > free_P
    if dual is not None:
        most_P = -weight_P * dual
        over_P = (weight_P < 0) & (loss_P > most_P)
        loss_P, clipped_P = loss_P.where(~over_P, most_P), clipped_P | over_P
    return loss_P, clipped_P


def _sums(x_P: "Tensor", number_P: "Tensor") -> "Tensor":
    """The sum over each token's sequence, shape (P,)."""
    return x_P.new_zeros(int(number_P.max()) + 1).index_add(0, number_P, x_P)[number_P]

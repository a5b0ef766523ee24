"""What it costs to go away from a reference policy, and which policy that is. No torch."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Literal

from longstride.core.component import Component
from longstride.core.numbers import Count, Share, Weight
from longstride.methods.base import REFERENCE
from longstride.methods.tokens import LARGEST_LOG, Tokens, sequence_sums

if TYPE_CHECKING:
    from torch import Tensor


class Anchor(Component):
    """Family: which policy a KL term holds on to, as training goes on."""

    @property
    def begins_as(self) -> str | None:
        """The model that the reference is at first; None is the start of the run."""
        return None

    @abstractmethod
    def step(self, iteration: int) -> float:
        """How far the reference moves toward the policy after the update of an iteration: 0 not at all, 1 all the
        way."""


class Start(Anchor):
    """The policy that the run began with, for ever."""

    def step(self, iteration: int) -> float:
        return 0.0


class MovingAverage(Anchor):
    """An exponential moving average of the policy."""

    decay: Share = 0.99
    """Share of the old average that is left after an update."""

    def step(self, iteration: int) -> float:
        return 1.0 - self.decay


class Latest(Anchor):
    """The policy as it was at the start of each phase of so many iterations."""

    every: Count
    """Iterations of a phase."""

    def step(self, iteration: int) -> float:
        return float(iteration % self.every == 0)


class Teacher(Start):
    """Another policy, for ever: a teacher, whose tokens are the policy's.

    With the estimator `k2` at coefficient 1 and no advantages it is on-policy distillation: the gradient is that of
    KL(policy || teacher) of each token given what stands before it, on what the policy itself sampled (Agarwal et al.,
    arXiv 2306.13649). Beside advantages it is a hold on the teacher.
    """

    model: str
    """A run folder, or a model as a recipe's `model` names it."""

    @property
    def begins_as(self) -> str | None:
        return self.model


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
    nothing is left out. Samples of an older policy are not weighed anew. Above a d of 20 the exponential of k3 stays.
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
        k2_P, k3_P = d_P.square() / 2, d_P.clamp(max=LARGEST_LOG).exp() - 1 - d_P
        estimates = {"k1": -d_P, "k2": k2_P, "k3": k3_P, "k3+": k3_P.detach() + k2_P - k2_P.detach()}
        return estimates[self.estimator] / length_P, k3_P.detach() / length_P

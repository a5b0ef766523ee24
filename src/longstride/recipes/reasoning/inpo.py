"""INPO: self-play on general preferences by one squared loss. Zhang et al., 2024, arXiv 2407.00617.

Online mirror descent against the policy itself finds the equilibrium of preferences with a hold of strength tau on the
reference, but its step needs the chance of every answer to win. INPO gets the same step from pairs that the policy
sampled and a preference labelled, y_w over y_l. It minimises

    (h - 1 / (2 eta))^2,   h = log pi(y_w) / pi(y_l) - (tau / eta) log ref(y_w) / ref(y_l)
                                - (1 - tau / eta) log pi_t(y_w) / pi_t(y_l)

whose minimum over all pairs of pi_t is pi_t^(1 - tau / eta) ref^(tau / eta) exp(P(y > pi_t) / eta), normalised: the step
of mirror descent. h is the margin of `methods.IPO` against a reference that moves, the geometric mixture of ref and pi_t,
and the loss is `IPO(tau=eta)` itself. Iterated DPO has the same loop, and a loss that takes preferences for those of a
reward.

| place | choice | paper (Llama-3-8B) | here |
|---|---|---|---|
| problem | `Duel` | prompts, a preference model | 12 answers in three kinds that beat each other in turn |
| roll out | pairs of pi_t | best and worst of 8 answers | 512 pairs, one label each, drawn by its chance |
| update | `IPO` to two anchors | tau / eta = 1/3 | tau = 0.1, eta = 1: 1/10 |
| update | steps | 3 iterations of an epoch each | 40 of 50 gradient steps, rate 0.5 |

Held more strongly than suits transitive preferences, iterated DPO settles beside the equilibrium too, with ten times
INPO's gap (`held_dpo` in the claim).

Deviations: a table of logits stands for the model; pairs are drawn as the paper's analysis draws them, not as best and
worst. Constants of the paper are from a summary.
"""

from typing import Any

import numpy as np

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, CountOrZero, Positive, Share
from longstride.envs.exact.games import log_softmax
from longstride.methods.preferences import DPO, IPO, PairLoss
from longstride.recipes.setups.games import Duel, pair_gradient
from longstride.run.exact import ExactMethod, ExactRecipe, State
from longstride.stats import Ordering


class SelfPlay(ExactMethod):
    """Each iteration labels pairs of answers of the policy, and takes gradient steps on a loss of these pairs."""

    loss: PairLoss = IPO(tau=1.0)
    """Of a pair's margin against the anchor. INPO's eta is the tau of `IPO`."""
    share: Share = 0.1
    """Share of the reference in the anchor, the rest is of the policy that sampled; INPO: tau / eta."""
    pairs: CountOrZero = 512
    """Labels an iteration; with 0, all pairs by their chances, as if there were infinitely many."""
    updates: Count = 50
    """Gradient steps an iteration."""
    rate: Positive = 0.5
    """Of a step."""

    def start(self, problem: Any, rng: np.random.Generator) -> State:
        if not isinstance(problem, Duel):
            raise ConfigError("self_play plays preference games; take problem = Duel()")
        return problem.begin(rng)

    def labelled(self, preferences: np.ndarray, policy: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """[V, V] share of the labels that prefer the row's answer to the column's."""
        chances = np.exp(policy[:, None] + policy[None]) * preferences
        chances /= chances.sum()  # both orders of a pair: rounding aside, their sum is 1/2
        return (
            rng.multinomial(self.pairs, chances.ravel()).reshape(chances.shape) / self.pairs if self.pairs else chances
        )

    def step(self, problem: Duel, state: State, rng: np.random.Generator) -> State:
        policy = state["policy"]
        shares = self.labelled(state["preferences"], policy, rng)
        anchor = self.share * state["reference"] + (1 - self.share) * policy
        for _ in range(self.updates):
            policy = log_softmax(policy - self.rate * pair_gradient(self.loss, policy - anchor, shares))
        return state | {"policy": policy, "queries": state["queries"] + self.pairs}


RECIPE = ExactRecipe(name="inpo", problem=Duel(strength=0.1), method=SelfPlay(), iterations=40)

_inpo = RECIPE.replace(every=40)


def _dpo(beta: float) -> ExactRecipe:
    """Iterated DPO, held to the reference; its loss bends by beta^2 / 4 at most, so it can take steps of 2 / beta^2."""
    return _inpo.replace(method=SelfPlay(loss=DPO(beta=beta), share=1.0, rate=2 / beta**2))


_transitive = Duel(strength=0.1, kind="transitive")

CLAIM = Claim(
    name="inpo",
    paper="arXiv 2407.00617, sections 1 and 3",
    statement="Where preferences go round in a circle, INPO closes the duality gap and iterated DPO does not; where they "
    "follow a reward, both do.",
    recipe=_inpo,
    arms={
        "inpo": _inpo,
        # of 0.3 to 1.4 the hold with the least gap where preferences are transitive, and where they are cyclic
        "dpo": _dpo(0.4),
        "held_dpo": _dpo(1.4),
        "transitive_inpo": _inpo.replace(problem=_transitive),
        "transitive_dpo": _dpo(0.4).replace(problem=_transitive),
    },
    measure="duality_gap",
    expected=Ordering(relations=("dpo > inpo by 0.2",)),
    control=Ordering(relations=("transitive_dpo > transitive_inpo by 0.2",)),
    seeds=tuple(range(100, 130)),
)

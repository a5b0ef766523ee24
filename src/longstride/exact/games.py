"""Preferences between enumerable answers: a game drawn by the seed, how far a policy is from its equilibrium,
and the gradient of a loss of pairs. What always holds: arms of a seed play the same game from
the same policy, the reference.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from scipy.special import log_softmax

from longstride.core.numbers import Positive
from longstride.exact.experiment import ExactProblem, State
from longstride.exact.worlds.games import PreferenceGame, cyclic, divergence, transitive
from longstride.methods.preferences import PairLoss

DIGITS = 14.0
"""No distance is told apart from 0 beyond these decimal digits."""


class Duel(ExactProblem):
    """A random preference game.

    Measures: `duality_gap` of the regularised game; `exploitability`, without regularisation; `digits`, minus the
    decimal logarithm of KL(equilibrium || policy); `queries`, comparisons asked for so far.
    """

    kind: Literal["cyclic", "transitive"] = "cyclic"
    """Whether preferences go round in a circle, or follow a reward."""
    lead: Annotated[float, Field(ge=0.5, le=0.9)] = 0.9
    """Of cyclic preferences, the chance of a kind of answers to be preferred to the next one, give or take 0.1."""
    answers: Annotated[int, Field(ge=3, le=200)] = 12
    """To choose from."""
    strength: Positive = 0.1
    """Weight of the KL divergence from the reference."""
    spread: Positive = 1.0
    """Deviation of the reference's logits, and of the reward of transitive preferences."""

    def begin(self, rng: np.random.Generator) -> State:
        """The game and its solution, and the policy at the start, as arrays."""
        if self.kind == "cyclic":
            drawn = cyclic(rng, self.answers, 0.1, self.lead)
        else:
            drawn = transitive(rng, self.answers, self.spread)
        reference = log_softmax(self.spread * rng.normal(size=self.answers))
        game = PreferenceGame(drawn, reference, self.strength)
        return {
            "preferences": drawn,
            "reference": reference,
            "equilibrium": game.equilibrium(),
            "policy": reference,
            "queries": np.array(0.0),
        }

    def game(self, state: Mapping[str, np.ndarray]) -> PreferenceGame:
        """The game that a state is about."""
        return PreferenceGame(state["preferences"], state["reference"], self.strength)

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        game, policy = self.game(solution), solution["policy"]
        distance = divergence(solution["equilibrium"], policy)
        return {
            "duality_gap": game.duality_gap(policy),
            "exploitability": game.exploitability(policy),
            "digits": min(DIGITS, -np.log10(max(distance, 10**-DIGITS))),
            "queries": float(solution["queries"]),
        }


def pair_gradient(loss: PairLoss, ratio: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """[V] gradient in the policy's logits of a loss of pairs.

    Args:
        loss: of a pair's margin h, the difference of two entries of `ratio`.
        ratio: [V] log-probability of each answer over that of the anchor; a constant added to it changes nothing.
        shares: [V, V] weight of the pairs in which the row's answer is preferred to the column's.
    """
    winners, losers = np.nonzero(shares)
    slopes = np.array([loss.slope(h) for h in (ratio[winners] - ratio[losers]).tolist()]) * shares[winners, losers]
    return np.bincount(winners, slopes, len(ratio)) - np.bincount(losers, slopes, len(ratio))

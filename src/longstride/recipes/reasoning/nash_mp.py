"""Nash-MP: the equilibrium of preferences by mirror prox. Tiapkin et al., 2025, arXiv 2505.19731.

Preferences need not come from a reward, so what is looked for is a policy that no other is preferred to: the equilibrium
of a game with itself, with a hold of strength beta on the reference. Mirror descent steps against the policy as it is,
and turns around the equilibrium. Mirror prox first tries the step, and then makes it from the same place against the
policy that the trial led to:

    half = argmin_p  P(policy > p) / beta + KL(p || reference) + KL(p || policy) / eta
    next = the same with P(half > p), and KL to the same policy

Each has a closed form for a table, a mixture in log-probabilities (`proximal`). With eta = 2 beta the divergence from the
equilibrium shrinks by 1 + 2 beta or more in an iteration, which is the paper's rate (1 + 2 beta)^(-N/2) in N queries.

| place | choice | paper | here |
|---|---|---|---|
| problem | `Duel` | a preference model, prompts | 12 answers in three kinds that beat each other in turn |
| update | `NashMP` | both steps in closed form (analysis); inner policy gradient with a moving target (models) | closed form |
| update | eta | 2 beta in the analysis | 2 beta |
| cost | query | the chance to win against a policy, for all answers | the same: two an iteration |
| beside | `MirrorDescent`, `NashMD` | Nash-MD and others | one query an iteration; best rate of ten |

Deviations: win rates are exact, so neither the paper's approximate version with sampled gradients nor its experiment
with a language model is here. The equations were put together from the paper's abstract and a summary, and their rate
is checked: `tests/test_recipe_nash_mp.py` holds it to the bound above.
"""

from typing import Any

import numpy as np

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.numbers import Positive
from longstride.envs.exact.games import PreferenceGame, log_softmax
from longstride.recipes.setups.games import Duel
from longstride.run.exact import ExactMethod, ExactRecipe, State
from longstride.stats import Ordering


def proximal(game: PreferenceGame, policy: np.ndarray, opponent: np.ndarray, eta: float) -> np.ndarray:
    """The proximal step from `policy` against `opponent`, both log-probabilities [V] (argmin above)."""
    pull = game.reference + game.wins(opponent) / game.strength
    return log_softmax((eta * pull + policy) / (1 + eta))


class _Play(ExactMethod):
    """What the methods share: they start from the reference of a drawn game, and count what they ask."""

    def start(self, problem: Any, rng: np.random.Generator) -> State:
        if not isinstance(problem, Duel):
            raise ConfigError(f"{self.type_name()} plays preference games; take problem = Duel()")
        return problem.begin(rng)


class NashMP(_Play):
    """Mirror prox."""

    pace: Positive = 2.0
    """eta in multiples of the hold on the reference."""

    def step(self, problem: Duel, state: State, rng: np.random.Generator) -> State:
        game, policy, eta = problem.game(state), state["policy"], self.pace * problem.strength
        half = proximal(game, policy, policy, eta)
        return state | {"policy": proximal(game, policy, half, eta), "queries": state["queries"] + 2}


class MirrorDescent(_Play):
    """Steps against the policy as it is: p proportional to policy^(1 - rate beta) reference^(rate beta)
    exp(rate P(y > policy))."""

    rate: Positive = 0.4
    """Weight of the chance to win; times beta, the share of the reference (at most 1)."""

    def step(self, problem: Duel, state: State, rng: np.random.Generator) -> State:
        game, policy = problem.game(state), state["policy"]
        held = _held(game, policy, self.rate)
        return state | {
            "policy": log_softmax(held + self.rate * game.wins(policy)),
            "queries": state["queries"] + 1,
        }


class NashMD(_Play):
    """Nash-MD (Munos et al., arXiv 2312.00886, section 6): the opponent is the mixture of policy and reference, which
    moves its fixed point off the equilibrium by an amount that goes to 0 with the rate."""

    rate: Positive = 0.4
    """As in `MirrorDescent`."""

    def step(self, problem: Duel, state: State, rng: np.random.Generator) -> State:
        game = problem.game(state)
        held = _held(game, state["policy"], self.rate)
        return state | {"policy": log_softmax(held + self.rate * game.wins(held)), "queries": state["queries"] + 1}


def _held(game: PreferenceGame, policy: np.ndarray, rate: float) -> np.ndarray:
    """The geometric mixture of policy and reference."""
    share = min(rate * game.strength, 1.0)
    return log_softmax((1 - share) * policy + share * game.reference)


RECIPE = ExactRecipe(name="nash_mp", problem=Duel(strength=0.02), method=NashMP(), iterations=300, every=10)

_prox = RECIPE.replace(every=300)
_descent = _prox.replace(method=MirrorDescent(), iterations=600, every=600)
# held strongly, the game is nearly one policy's own problem: no step overshoots, and both are right to the last digit
_strong = Duel(strength=1.0)

CLAIM = Claim(
    name="nash_mp",
    paper="arXiv 2505.19731, abstract",
    statement="At 600 queries mirror prox is closer to the equilibrium by orders of magnitude than mirror descent at its best "
    "rate; held strongly to the reference, both are there.",
    recipe=_prox,
    arms={
        "mirror_prox": _prox,
        "mirror_descent": _descent,
        "nash_md": _descent.replace(method=NashMD()),
        "strong_prox": _prox.replace(problem=_strong),
        "strong_descent": _descent.replace(problem=_strong),
    },
    measure="digits",
    expected=Ordering(relations=("mirror_prox > mirror_descent by 3",)),
    control=Ordering(relations=("strong_prox > strong_descent by 3",)),
    seeds=tuple(range(100, 140)),
)

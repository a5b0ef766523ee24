"""Preference games: solutions, gaps and divergences against what is known by hand."""

import numpy as np
import pytest
from scipy.special import log_softmax

from longstride.core.errors import ConfigError
from longstride.exact.worlds.games import PreferenceGame, cyclic, divergence, transitive

ROCK_PAPER_SCISSORS = np.array([[0.5, 0.0, 1.0], [1.0, 0.5, 0.0], [0.0, 1.0, 0.5]])
UNIFORM = np.log(np.ones(3) / 3)


def test_rock_paper_scissors_from_the_uniform_policy_is_solved_by_it() -> None:
    game = PreferenceGame(ROCK_PAPER_SCISSORS, UNIFORM, 0.05)
    assert game.equilibrium() == pytest.approx(UNIFORM)
    assert game.exploitability(UNIFORM) == pytest.approx(0)
    assert game.exploitability(np.log([0.8, 0.1, 0.1])) == pytest.approx(0.85 - 0.5)  # paper: 0.8 + 0.05


def test_two_answers_have_the_equilibrium_that_one_equation_gives() -> None:
    game = PreferenceGame(np.array([[0.5, 0.7], [0.3, 0.5]]), np.log([0.5, 0.5]), 0.1)
    p = np.exp(game.equilibrium())
    assert np.log(p[0] / p[1]) == pytest.approx((0.7 - 0.5) / 0.1)  # the margin of either opponent is 0.2


@pytest.mark.parametrize("strength", [0.01, 0.1, 1.0])
def test_an_equilibrium_is_its_own_best_response_and_only_it_has_no_gap(strength: float) -> None:
    rng = np.random.default_rng(0)
    for preferences in (cyclic(rng, 12, 0.1), transitive(rng, 12, 1.0)):
        game = PreferenceGame(preferences, log_softmax(rng.normal(size=12)), strength)
        found = game.equilibrium()
        assert np.abs(found - game.response(found)).max() < 1e-9
        assert abs(game.duality_gap(found)) < 1e-12 < game.duality_gap(game.reference)


def test_the_duality_gap_is_the_gain_of_the_best_of_many_policies() -> None:
    rng = np.random.default_rng(1)
    game = PreferenceGame(cyclic(rng, 4, 0.1), log_softmax(rng.normal(size=4)), 0.3)
    policy = log_softmax(rng.normal(size=4))

    def payoff(p: np.ndarray, q: np.ndarray) -> float:
        held = divergence(q, game.reference) - divergence(p, game.reference)
        return float(np.exp(p) @ game.preferences @ np.exp(q)) + game.strength * held

    best = game.response(policy)
    gap = payoff(best, policy) - payoff(policy, best)
    assert game.duality_gap(policy) == pytest.approx(gap)
    others = log_softmax(3 * rng.normal(size=(2000, 4)), axis=-1)
    assert max(payoff(p, policy) for p in others) <= payoff(best, policy)
    assert min(payoff(policy, p) for p in others) >= payoff(policy, best)


def test_a_divergence_keeps_its_digits_where_two_policies_nearly_agree() -> None:
    p = np.log([0.5, 0.5])
    q = np.log([0.5 + 1e-9, 0.5 - 1e-9])
    assert divergence(p, q) == pytest.approx(2e-18, rel=1e-6)
    assert divergence(np.log([0.5, 0.5]), np.log([0.25, 0.75])) == pytest.approx(0.5 * np.log(2) + 0.5 * np.log(2 / 3))


def test_cyclic_preferences_have_no_best_answer_and_transitive_ones_do() -> None:
    rng = np.random.default_rng(2)
    assert not (cyclic(rng, 9, 0.05) >= 0.5).all(1).any()
    assert cyclic(rng, 4, 0.0, 0.7)[0] == pytest.approx([0.5, 0.7, 0.3, 0.5])
    assert (transitive(rng, 9, 1.0) >= 0.5).all(1).sum() == 1


def test_a_game_of_other_shapes_or_of_chances_that_do_not_sum_to_1_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"must be \[3, 3\]"):
        PreferenceGame(np.ones((2, 2)) / 2, UNIFORM, 0.1)
    with pytest.raises(ConfigError, match="must sum to 1"):
        PreferenceGame(np.ones((3, 3)), UNIFORM, 0.1)
    with pytest.raises(ConfigError, match="more than 0"):
        PreferenceGame(ROCK_PAPER_SCISSORS, UNIFORM, 0.0)

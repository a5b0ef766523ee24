"""INPO: its loss has the gradient that is computed, and the step of mirror descent as its minimum."""

import numpy as np
import pytest
from scipy.special import log_softmax

from longstride.exact.games import Duel, pair_gradient
from longstride.exact.worlds.games import PreferenceGame, cyclic, transitive
from longstride.methods.preferences import DPO, IPO
from longstride.papers.inpo.exact import RECIPE, SelfPlay

ETA, TAU = 0.8, 0.2
INPO = SelfPlay(loss=IPO(tau=ETA), share=TAU / ETA, pairs=0, updates=4000, rate=0.8)


def played(v: int, seed: int = 0) -> tuple[PreferenceGame, np.ndarray]:
    """A cyclic game, and a policy that is not its reference."""
    rng = np.random.default_rng(seed)
    reference, policy = log_softmax(rng.normal(size=(2, v)), axis=-1)
    return PreferenceGame(cyclic(rng, v, 0.1), reference, TAU), policy


def test_the_gradient_is_that_of_the_papers_loss() -> None:
    game, sampler = played(5)
    rng = np.random.default_rng(1)
    policy, shares = log_softmax(rng.normal(size=5)), rng.dirichlet(np.ones(25)).reshape(5, 5)
    anchor = INPO.share * game.reference + (1 - INPO.share) * sampler

    def loss(logits: np.ndarray) -> float:
        pi = log_softmax(logits)
        h = pi[:, None] - pi
        h = h - TAU / ETA * (game.reference[:, None] - game.reference)
        h = h - (ETA - TAU) / ETA * (sampler[:, None] - sampler)
        return float((shares * (h - 1 / (2 * ETA)) ** 2).sum())

    step = 1e-5
    by_differences = [(loss(policy + step * e) - loss(policy - step * e)) / (2 * step) for e in np.eye(5)]
    assert pair_gradient(INPO.loss, policy - anchor, shares) == pytest.approx(np.array(by_differences), abs=1e-7)


def test_an_iteration_over_all_pairs_is_the_step_of_mirror_descent() -> None:
    game, policy = played(5)
    state = {"preferences": game.preferences, "reference": game.reference, "policy": policy, "queries": np.array(0.0)}
    problem = Duel(strength=TAU)
    found = INPO.step(problem, state, np.random.default_rng(0))["policy"]
    share = TAU / ETA
    expected = log_softmax(share * game.reference + (1 - share) * policy + game.wins(policy) / ETA)
    assert found == pytest.approx(expected, abs=1e-6)


def test_labels_have_the_chances_of_the_game_and_pairs_those_of_the_policy() -> None:
    game, policy = played(4)
    exact = INPO.labelled(game.preferences, policy, np.random.default_rng(0))
    p = np.exp(policy)
    assert exact + exact.T == pytest.approx(2 * np.outer(p, p))
    assert exact / (exact + exact.T) == pytest.approx(game.preferences)
    many = SelfPlay(pairs=100_000).labelled(game.preferences, policy, np.random.default_rng(0))
    assert many.sum() == pytest.approx(1) and many == pytest.approx(exact, abs=0.005)


def test_iterated_over_all_pairs_it_ends_at_the_equilibrium() -> None:
    problem = Duel(answers=5, strength=0.5)
    method = SelfPlay(loss=IPO(tau=1.0), share=0.5, pairs=0, updates=300, rate=0.8)
    state = method.start(problem, np.random.default_rng(0))
    for i in range(40):
        state = method.step(problem, state, np.random.default_rng(i))
    assert state["policy"] == pytest.approx(state["equilibrium"], abs=1e-5)


def test_dpo_over_all_pairs_finds_the_reward_of_transitive_preferences_and_fixes_it() -> None:
    rng = np.random.default_rng(3)
    preferences, reference = transitive(rng, 4, 1.0), log_softmax(rng.normal(size=4))
    reward = np.log(preferences[:, 0] / preferences[0])
    method = SelfPlay(loss=DPO(beta=1.0), share=1.0, pairs=0, updates=4000, rate=4.0)
    state = {"preferences": preferences, "reference": reference, "policy": reference, "queries": np.array(0.0)}
    found = method.step(Duel(), state, rng)["policy"]
    assert found == pytest.approx(log_softmax(reference + reward), abs=1e-6)


def test_the_recipe_states_what_is_asked() -> None:
    method = RECIPE.method
    assert isinstance(method, SelfPlay) and isinstance(method.loss, IPO) and isinstance(RECIPE.problem, Duel)
    assert method.share == pytest.approx(RECIPE.problem.strength / method.loss.tau)

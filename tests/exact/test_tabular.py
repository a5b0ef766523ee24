"""Enumerable problems: exact gradients are what differences and samples say."""

import dataclasses

import numpy as np
import pytest

from longstride.core.errors import ConfigError
from longstride.exact.worlds.tabular import EnumerableMDP, bandit, random_mdp


def test_a_bandit_by_hand() -> None:
    problem = bandit([1.0, 0.0])
    assert problem.expected_return(np.zeros((1, 2))) == 0.5
    np.testing.assert_allclose(problem.gradient(np.zeros((1, 2))), [[0.25, -0.25]])
    logits = np.log([[0.2, 0.8]])
    np.testing.assert_allclose(problem.gradient(logits), [[0.2 * 0.8, -0.8 * 0.2]])


def test_a_bandit_of_ten_thousand_arms_has_its_closed_form() -> None:
    rng = np.random.default_rng(0)
    rewards, logits = (rng.random(10_000) < 0.001).astype(float), rng.normal(size=(1, 10_000))
    p = np.exp(logits[0]) / np.exp(logits[0]).sum()
    np.testing.assert_allclose(bandit(rewards.tolist()).gradient(logits)[0], p * (rewards - p @ rewards), atol=1e-15)


def test_a_corridor_by_hand() -> None:
    """Action 1 goes on from state 0 to 1 and from there to a reward; action 0 ends the episode."""
    moves = np.zeros((3, 2, 3))
    moves[:, 0, 2] = moves[0, 1, 1] = moves[1:, 1, 2] = 1
    rewards = np.array([[0.0, 0], [0, 1], [9, 9]])
    problem = EnumerableMDP(moves, rewards, np.array([1.0, 0, 0]), np.array([False, False, True]), horizon=3)
    assert problem.expected_return(np.zeros((3, 2))) == 0.25
    np.testing.assert_allclose(problem.gradient(np.zeros((3, 2))), [[-0.125, 0.125], [-0.125, 0.125], [0, 0]])
    paths = {(p.states, p.actions, p.rewards): p.probability for p in problem.trajectories(np.zeros((3, 2)))}
    assert paths == {((0,), (0,), (0,)): 0.5, ((0, 1), (1, 0), (0, 0)): 0.25, ((0, 1), (1, 1), (0, 1)): 0.25}


PROBLEMS = [
    (s, a, h, stochastic, discount)
    for s, a, h in ((2, 2, 2), (3, 3, 2), (3, 2, 4), (4, 3, 3))
    for stochastic in (False, True)
    for discount in (1.0, 0.9)
]


@pytest.mark.parametrize("shape", PROBLEMS)
def test_the_exact_gradient_is_that_of_differences_and_of_all_trajectories(shape: tuple) -> None:
    rng = np.random.default_rng(3)
    problem, logits = random_mdp(rng, *shape), rng.normal(size=shape[:2])
    paths, gradient = list(problem.trajectories(logits)), problem.gradient(logits)
    assert len({(p.states, p.actions) for p in paths}) == len(paths)
    assert max(len(p.actions) for p in paths) <= problem.horizon
    assert sum(p.probability for p in paths) == pytest.approx(1, abs=1e-12)
    returns = sum(p.probability * problem.discounted(p) for p in paths)
    assert returns == pytest.approx(problem.expected_return(logits), abs=1e-12)
    reinforce = sum(p.probability * problem.discounted(p) * problem.score(logits, p) for p in paths)
    np.testing.assert_allclose(gradient, reinforce, atol=1e-12)
    step = 1e-5 * np.eye(logits.size).reshape(-1, *logits.shape)
    up, down = ([problem.expected_return(logits + sign * d) for d in step] for sign in (1, -1))
    np.testing.assert_allclose(gradient.ravel(), (np.array(up) - down) / 2e-5, atol=1e-9)


@pytest.mark.parametrize("stochastic", [False, True])
def test_a_large_sample_of_reinforce_has_the_exact_gradient_in_its_interval(stochastic: bool) -> None:
    rng = np.random.default_rng(5)
    problem, logits = random_mdp(rng, 4, 3, 3, stochastic), rng.normal(size=(4, 3))
    paths = problem.sample(logits, rng, 20_000)
    estimate = {id(p): problem.discounted(p) * problem.score(logits, p) for p in paths}
    estimates = np.array([estimate[id(p)] for p in paths])
    error = estimates.std(0) / len(paths) ** 0.5
    assert error.max() < 0.02 < np.abs(problem.gradient(logits)).max()
    assert (np.abs(estimates.mean(0) - problem.gradient(logits)) <= 4 * error + 1e-12).all()


def test_a_problem_that_is_none_is_refused() -> None:
    ok = random_mdp(np.random.default_rng(0), 3, 2, 2, stochastic=True)
    for change, said in (
        ({"transitions": ok.transitions * 2}, "transitions must be probabilities"),
        ({"start": np.array([0.0, 0, 1])}, "not terminal"),
        ({"rewards": np.zeros((2, 2))}, "want transitions"),
        ({"horizon": 0}, "1 step or more"),
    ):
        with pytest.raises(ConfigError, match=said):
            dataclasses.replace(ok, **change)

"""Trajectory weighting: weights by hand, and the policy they lead to against closed forms; the worlds it plays in."""

import numpy as np
import pytest

from longstride.control import ControlEpisode, TransitionStore
from longstride.exact.worlds.discounted import DiscountedWorld, random_world
from longstride.papers.trajectory_weighting.exact import RECIPE, MixedEpisodes, NearTheData
from longstride.papers.trajectory_weighting.method import ByReturn

RETURNS = np.array([1.0, 3.0, 2.0, 5.0])
FIRST = np.array([0, 0, 1, 1])
PROBLEM = MixedEpisodes(states=6, actions=3, episodes=12, length=5, good=0.5)


@pytest.mark.parametrize(("kind", "scaled"), [("return", [0, 0.5, 0.25, 1]), ("advantage", [1 / 6, 5 / 6, 0, 1])])
def test_episodes_weigh_as_their_returns_say(kind: str, scaled: list[float]) -> None:
    """Means by first state are 2 and 3.5: advantages -1, 1, -1.5, 1.5."""
    p = NearTheData(weights=kind, alpha=0.2).probabilities(RETURNS, FIRST)  # pyright: ignore[reportArgumentType]
    exact = np.exp(np.array(scaled) / 0.2)
    assert np.allclose(p, exact / exact.sum(), atol=1e-12)


@pytest.mark.parametrize("over_start", [False, True])
def test_episodes_of_a_store_weigh_as_their_returns_say(over_start: bool) -> None:
    """Returns 1, 3, 2, 5 from starts 0, 0, 1, 1: the regression expects 2 and 3.5."""
    episodes = [
        ControlEpisode(np.full((3, 1), start), np.zeros((2, 1)), np.array([1.0, total - 1]), False)
        for start, total in zip(FIRST, RETURNS, strict=True)
    ]
    weights = ByReturn(temperature=0.2, over_start=over_start)(TransitionStore.of(episodes))
    scaled = [1 / 6, 5 / 6, 0, 1] if over_start else [0, 0.5, 0.25, 1]
    assert np.allclose(weights, np.exp((np.array(scaled) - 1) / 0.2), atol=1e-6)


def test_a_high_temperature_or_equal_returns_draw_uniformly() -> None:
    state = NearTheData().start(PROBLEM, np.random.default_rng(0))
    plain = NearTheData(weights="uniform").model(PROBLEM, state)
    warm = NearTheData(alpha=1e9).model(PROBLEM, state)
    assert np.allclose(plain[0].transitions, warm[0].transitions, atol=1e-6)
    assert np.allclose(plain[1], warm[1], atol=1e-6)
    assert np.allclose(NearTheData().probabilities(np.ones(4), FIRST), 0.25)


def test_the_policy_is_the_data_tilted_by_its_own_values() -> None:
    method = NearTheData(temperature=0.5)
    state = method.start(PROBLEM, np.random.default_rng(0))
    for _ in range(400):
        state = method.step(PROBLEM, state, np.random.default_rng(0))
    world, data = method.model(PROBLEM, state)
    policy = method.solution(PROBLEM, state)["policy"]
    q = world.backup(world.values(policy))  # the exact values of the policy, by a linear solve
    tilted = data * np.exp(q / 0.5)
    assert np.allclose(policy, tilted / tilted.sum(1, keepdims=True), atol=1e-6)
    assert (policy[data == 0] == 0).all()


def test_weighted_counts_are_what_drawing_with_these_probabilities_comes_to() -> None:
    method, rng = NearTheData(alpha=0.5), np.random.default_rng(1)
    state = method.start(PROBLEM, np.random.default_rng(0))
    p = method.probabilities(state["reward"].sum(1), state["state"][:, 0])
    episodes, steps = rng.choice(12, size=200_000, p=p), rng.integers(5, size=200_000)
    counts = np.zeros((6, 3))
    np.add.at(counts, (state["state"][episodes, steps], state["action"][episodes, steps]), 1)
    seen = counts.sum(1) > 2000
    drawn = counts[seen] / counts[seen].sum(1, keepdims=True)
    assert np.allclose(drawn, method.model(PROBLEM, state)[1][seen], atol=0.03)


def test_values_of_a_world_are_exact() -> None:
    """Two states: staying in 1 pays 1, everything else nothing."""
    moves = np.zeros((2, 2, 2))
    moves[:, 0, 0] = moves[:, 1, 1] = 1
    world = DiscountedWorld(moves, np.array([[0.0, 0.0], [0.0, 1.0]]), 0.5)
    assert np.allclose(world.optimal, [[0.5, 1], [0.5, 2]], atol=1e-9)
    assert np.allclose(world.values(np.array([[0, 1.0], [0, 1.0]])), [1, 2])
    assert world.normalised(np.array([[0, 1.0], [0, 1.0]])) == pytest.approx(1)
    assert world.normalised(np.full((2, 2), 0.5)) == pytest.approx(0)
    other = random_world(np.random.default_rng(0), 6, 3, 0.9)
    assert np.allclose(other.transitions.sum(2), 1) and ((other.transitions > 0).sum(2) == 3).all()
    assert np.allclose(other.backup(other.optimal.max(1)), other.optimal, atol=1e-7)


def test_the_recipe_ends_above_its_start() -> None:
    state = RECIPE.method.start(RECIPE.problem, np.random.default_rng(0))
    first = RECIPE.problem.measures(RECIPE.method.solution(RECIPE.problem, state))["value"]
    for _ in range(30):
        state = RECIPE.method.step(RECIPE.problem, state, np.random.default_rng(0))
    assert RECIPE.problem.measures(RECIPE.method.solution(RECIPE.problem, state))["value"] > first + 0.1

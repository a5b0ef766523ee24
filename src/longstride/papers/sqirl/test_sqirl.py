"""SQIRL: the effective horizon is that of the construction, and the algorithm solves from it on."""

import numpy as np
import pytest

from longstride.exact.worlds.chains import optimal_value, value_of
from longstride.papers.sqirl.exact import SQIRL, Tunnels, _means, qvi_horizon


def solved(method: SQIRL, problem: Tunnels, seed: int = 0) -> float:
    state = method.start(problem, np.random.default_rng(seed))
    for i in range(problem.horizon):
        state = method.step(problem, state, np.random.default_rng(i))
    return problem.measures(state)["share"]


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_the_effective_horizon_of_tunnels_is_their_depth(depth: int) -> None:
    """With a bait of 0.2 and three actions a tunnel looks better where one right action is left: 1/3 > 0.2."""
    problem = Tunnels(depth=depth, slip=0.0)
    assert qvi_horizon(problem.world(problem.draw(np.random.default_rng(0)))) == depth


def test_a_lock_has_effective_horizon_1_and_is_not_found_by_chance() -> None:
    """k alone is not what makes a problem easy: the random policy has to see the reward too."""
    lock = Tunnels(rooms=1, depth=15, bait=0.0)
    assert qvi_horizon(lock.world(lock.draw(np.random.default_rng(0)))) == 1
    assert solved(SQIRL(k=1, episodes=200), lock) < 0.01


def test_it_solves_from_the_effective_horizon_on_and_not_below() -> None:
    problem = Tunnels(rooms=1, depth=2)
    shares = [solved(SQIRL(k=k, episodes=2000), problem) for k in (1, 2, 3)]
    assert shares[0] < 0.3 and shares[1:] == pytest.approx([1, 1])


def test_fitted_values_are_those_of_the_random_policy_backed_up() -> None:
    """With many episodes the first step's choice is the greedy one of the exact Q^k."""
    problem = Tunnels(rooms=1, depth=1, bait=0.5)  # at k = 1 the bait looks better: 0.5 > 1/3; at k = 2 the tunnel
    for k, best in ((1, 1), (2, 0)):
        state = SQIRL(k=k).start(problem, np.random.default_rng(3))
        after = SQIRL(k=k, episodes=5000).step(problem, state, np.random.default_rng(0))
        assert after["policy"][0].argmax() == (state["right"][0, 0] + best) % 3
        assert (after["policy"][1:] == state["policy"][1:]).all() and after["planned"] == 1


def test_the_share_is_that_of_the_best_return() -> None:
    problem = Tunnels()
    state = SQIRL().start(problem, np.random.default_rng(0))
    world = problem.world(state["right"])
    expected = value_of(world, state["policy"]) / optimal_value(world)
    assert problem.measures(state) == {"share": pytest.approx(expected), "solved": 0.0}


def test_a_plan_for_all_steps_is_finished() -> None:
    problem = Tunnels(rooms=1, depth=1)
    state = SQIRL().start(problem, np.random.default_rng(0)) | {"planned": np.array(2)}
    assert SQIRL().step(problem, state, np.random.default_rng(0)) is state


@pytest.mark.parametrize(("short", "k"), [(0, 3), (1, 2), (2, 1), (5, 1)])
def test_k_of_0_is_the_effective_horizon_less_what_it_is_short_of(short: int, k: int) -> None:
    problem = Tunnels(rooms=1)
    assert problem.effective_horizon == 3
    state = SQIRL().start(problem, np.random.default_rng(0))
    relative, plain = (
        method.step(problem, state, np.random.default_rng(1)) for method in (SQIRL(k=0, short=short), SQIRL(k=k))
    )
    assert (relative["policy"] == plain["policy"]).all()
    assert SQIRL(episodes=7).spent(problem, relative) == {"samples": 7}


def test_a_ridge_adds_episodes_that_return_nothing() -> None:
    values, tried = _means(np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([2.0, 4.0, 3.0]), 1.0, (2, 2))
    assert values.tolist() == [[0, 2], [1.5, 0]] and tried.tolist() == [[False, True], [True, False]]

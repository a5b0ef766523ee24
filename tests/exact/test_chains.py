"""Chains, locks and lanes: exact values against closed forms, and sampled episodes against exact occupancies."""

import numpy as np
import pytest

from longstride.exact.worlds.chains import greedy, lanes, optimal_value, simulate, tunnels, value_of
from longstride.exact.worlds.tabular import EnumerableMDP, random_mdp


def occupancy(problem: EnumerableMDP, policy: np.ndarray) -> np.ndarray:
    """[S, A] expected number of times that an episode of a policy [S, A] takes each action in each state."""
    here, total = problem.start, np.zeros_like(policy)
    for _ in range(problem.horizon):
        taken = np.where(problem.terminal, 0.0, here)[:, None] * policy
        total += taken
        here = np.einsum("sa,sak->k", taken, problem.transitions)
    return total


def test_episodes_visit_states_as_often_as_computed_and_stop_where_they_end() -> None:
    rng = np.random.default_rng(0)
    problem = random_mdp(rng, states=5, actions=3, horizon=6, stochastic=True)
    policy = rng.dirichlet(np.ones(3), size=5)
    n = 40_000
    walks = simulate(problem, policy, n, rng)
    visits = np.zeros((5, 3))
    np.add.at(visits, (walks.states[:, :-1][walks.alive], walks.actions[walks.alive]), 1)
    assert visits / n == pytest.approx(occupancy(problem, policy), abs=0.02)
    assert walks.rewards.sum(1).mean() == pytest.approx(value_of(problem, policy), abs=0.03)
    ended = walks.states[:, :-1] == 4
    assert (walks.alive == ~ended).all() and not walks.rewards[ended].any()
    assert (walks.states[:, 1:][ended] == 4).all()


def test_the_value_of_a_policy_is_its_occupancy_times_the_rewards() -> None:
    rng = np.random.default_rng(1)
    problem = random_mdp(rng, states=5, actions=3, horizon=6, stochastic=True)
    policy = rng.dirichlet(np.ones(3), size=5)
    assert (occupancy(problem, policy) * problem.rewards).sum() == pytest.approx(value_of(problem, policy))


def test_no_policy_is_better_than_the_best_and_one_is_as_good() -> None:
    rng = np.random.default_rng(2)
    problem = tunnels(rng.integers(2, size=(1, 3)), rooms=1, depth=2, actions=2, bait=0.3, slip=0.2)
    policies = np.eye(2)[np.array(np.meshgrid(*[[0, 1]] * 3)).reshape(3, -1).T]  # of the three places on the way
    values = []
    for chosen in policies:
        policy = np.full((7, 2), 0.5)
        policy[[0, 2, 4]] = chosen
        values.append(value_of(problem, policy))
    assert max(values) == pytest.approx(optimal_value(problem))


def test_ties_are_shared_by_the_greedy_policy() -> None:
    assert greedy(np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0]])) == pytest.approx(np.array([[0.5, 0.5, 0], [0, 1, 0]]))


@pytest.mark.parametrize(("rooms", "depth", "actions"), [(1, 1, 2), (3, 3, 3), (2, 4, 2)])
def test_tunnels_pay_what_their_shape_says(rooms: int, depth: int, actions: int) -> None:
    right = np.random.default_rng(3).integers(actions, size=(rooms, depth + 1))
    problem = tunnels(right, rooms, depth, actions, bait=0.2, slip=0.0)
    assert optimal_value(problem) == pytest.approx(rooms)
    uniform = np.full(problem.rewards.shape, 1 / actions)
    assert value_of(problem, uniform) == pytest.approx(rooms * (0.2 / actions + actions ** -(depth + 1.0)))
    bait = uniform.copy()
    for room in range(rooms):
        bait[2 * room * (depth + 1)] = np.eye(actions)[(right[room, 0] + 1) % actions]
    assert value_of(problem, bait) == pytest.approx(rooms * 0.2)
    walks = simulate(problem, uniform, 50, np.random.default_rng(0))
    assert (walks.states[:, -1] == problem.terminal.argmax()).all() and walks.alive.all()


def test_every_way_through_lanes_that_are_not_critical_gets_to_the_end() -> None:
    shape = (6, 3)
    free, right = np.zeros(shape, bool), np.zeros(shape, int)
    problem = lanes(free, right, slip=0.2)
    policy = np.random.default_rng(4).dirichlet(np.ones(3), size=19)
    assert value_of(problem, policy) == pytest.approx(1)


def test_a_random_policy_gets_through_critical_cells_by_chance_alone() -> None:
    right = np.random.default_rng(5).integers(3, size=(6, 3))
    problem = lanes(np.ones((6, 3), bool), right, slip=0.2)
    assert value_of(problem, np.full((19, 3), 1 / 3)) == pytest.approx(3.0**-6)
    expert = np.append(np.eye(3)[right.ravel()], np.full((1, 3), 1 / 3), axis=0)
    assert value_of(problem, expert) == pytest.approx(1)


def test_a_lane_is_kept_or_changed_by_one_and_a_slip_draws_from_the_three() -> None:
    problem = lanes(np.zeros((2, 3), bool), np.zeros((2, 3), int), slip=0.3)
    assert problem.transitions[1, 2, 3:6] == pytest.approx([0.1, 0.1, 0.8])  # middle lane, to the right
    assert problem.transitions[0, 0, 3:6] == pytest.approx([0.9, 0.1, 0.0])  # there is no lane beyond the first

"""Offline RL against cloning: values and shares by hand, what they are with as much data as one likes, and what networks do
with data of which the smaller part is good."""

import numpy as np
import pytest

from longstride.control import ControlEpisode, ControlRecipe, TransitionStore
from longstride.control.envs import Spec
from longstride.control.learner import ControlLearner
from longstride.exact.experiment import ExactRecipe
from longstride.exact.worlds.chains import value_of
from longstride.models.mlp import Trunk
from longstride.papers.rl_or_cloning import cloned, recorded
from longstride.papers.rl_or_cloning.exact import CLAIM, ExpertCloning, Lanes, Pessimistic, borrowed, by_state

ONE = np.zeros((2, 1, 3, 2))
"""Data of two columns with one lane: counts of [column, lane, action, lane or end]."""
ONE[0, 0, 0] = [4, 0]  # action 0 goes on, four times of four
ONE[0, 0, 1] = [1, 0]  # action 1 goes on, once of once
ONE[0, 0, 2] = [0, 9]  # action 2 ends the episode
ONE[1, 0, 1] = [0, 4]
EARNED = np.zeros((2, 1, 3))
EARNED[1, 0, 1] = 3.0  # three of four got to the end


def test_pessimistic_values_are_the_bounds_by_hand() -> None:
    q = Pessimistic(penalty=0.1).values(ONE, EARNED)
    last = 0.75 - 0.1 / 2
    assert q[1, 0] == pytest.approx([0, last, 0])
    assert q[0, 0] == pytest.approx([last - 0.1 / 2, last - 0.1, 0])
    assert Pessimistic(penalty=0.1).policy(ONE, EARNED)[0, 0] == pytest.approx([1, 0, 0])


def test_cloning_does_what_was_done_as_often_and_anything_where_nothing_was() -> None:
    policy = ExpertCloning().policy(ONE, EARNED)
    assert policy[0, 0] == pytest.approx(np.array([4, 1, 9]) / 14)
    assert ExpertCloning().policy(np.zeros((1, 1, 3, 2)), EARNED)[0, 0] == pytest.approx(np.ones(3) / 3)


def test_a_cell_that_was_not_seen_does_what_is_done_in_near_lanes_of_its_column() -> None:
    policy, seen = np.full((2, 4, 3), 1 / 3), np.zeros((2, 4), bool)
    seen[0, [0, 2]] = True
    policy[0, 0], policy[0, 2] = np.eye(3)[0], np.eye(3)[2]
    found = borrowed(policy, seen, 1.0)
    assert found[0, 1] == pytest.approx([0.5, 0, 0.5])
    far = np.exp(-2) / (1 + np.exp(-2))  # three lanes away against one
    assert found[0, 3] == pytest.approx([far, 0, 1 - far])
    assert np.array_equal(found[0, [0, 2]], policy[0, [0, 2]]) and np.array_equal(found[1], policy[1])
    assert np.array_equal(borrowed(policy, seen, 0.0), policy)


def test_arms_spend_as_many_walks() -> None:
    for arm in ("rl_noisy", "cloning"):
        recipe = CLAIM.arms[arm]
        assert isinstance(recipe, ExactRecipe)
        method, problem = recipe.method, recipe.problem
        state = method.step(problem, method.start(problem, np.random.default_rng(0)), np.random.default_rng(1))
        assert method.spent(problem, state) == {"walks": 5}


def test_an_expert_gets_to_the_end_and_noise_fails_in_critical_cells_alone() -> None:
    problem = Lanes(columns=8)
    state = problem.begin(np.random.default_rng(0))
    assert value_of(problem.world(state), by_state(problem.expert(state, 0.0))) == pytest.approx(1)
    harmless = state | {"critical": np.zeros((8, 5), bool)}
    assert value_of(problem.world(harmless), by_state(problem.expert(harmless, 0.5))) == pytest.approx(1)
    every = state | {"critical": np.ones((8, 5), bool)}
    expected = (1 - 0.3 * 2 / 3) ** 8
    assert value_of(problem.world(every), by_state(problem.expert(every, 0.3))) == pytest.approx(expected)


@pytest.mark.parametrize(
    "method", [ExpertCloning(walks=500), Pessimistic(walks=500), Pessimistic(walks=500, noise=0.2)]
)
def test_with_much_data_all_ways_are_optimal(method: ExpertCloning | Pessimistic) -> None:
    problem = Lanes(columns=8)
    state = method.start(problem, np.random.default_rng(0))
    assert problem.measures(state)["known"] == 0
    for i in range(4):
        state = method.step(problem, state, np.random.default_rng(i))
    assert problem.measures(state)["success"] > 0.98


def test_data_counts_every_step_until_the_end_of_its_walk() -> None:
    problem = Lanes(columns=8, critical=0.5)
    method = ExpertCloning(walks=50, noise=0.3)
    state = method.step(problem, method.start(problem, np.random.default_rng(0)), np.random.default_rng(0))
    by_column = state["counts"].sum((1, 2, 3))
    assert by_column[0] == 50 and (np.diff(by_column) <= 0).all() and by_column[-1] > 0
    going_on = state["counts"][..., :-1].sum((1, 2, 3))
    assert (going_on[:-1] == by_column[1:]).all() and going_on[-1] == 0
    assert state["earned"][:-1].sum() == 0 and 0 < state["earned"].sum() <= by_column[-1]


@pytest.mark.parametrize(("recipe", "low", "high"), [(cloned.RECIPE, -0.5, 0.1), (recorded.RECIPE, 0.25, 1.0)])
def test_cloning_does_what_is_common_in_the_data_and_rl_what_earns(
    recipe: ControlRecipe, low: float, high: float
) -> None:
    """Of four actions three are -0.5 and earn nothing, and one is 0.5 and earns 1."""
    actions = [np.array([[a]]) for a in (-0.5, -0.5, -0.5, 0.5)] * 4
    store = TransitionStore.of([ControlEpisode(np.zeros((2, 1)), a, np.maximum(2 * a[0], 0), True) for a in actions])
    small = Trunk(width=16, depth=1, norm=False, activation="relu")
    level = recipe.agent.levels[0]
    critic = None if level.critic is None else level.critic.replace(trunk=small, conservative={"weight": 0.1})
    agent = recipe.agent.replace(
        levels=(level.replace(policy={"trunk": small}, critic=critic),), batch=32, critic_lr=0.02, policy_lr=0.02
    )
    learner = ControlLearner(agent, Spec(1, 1, ()), 0)
    learner.train(120, [(store, 32)])
    seen = (np.zeros((1, 1), np.float32), np.zeros((1, 0), np.float32), np.ones(1, bool))
    assert low < learner.actor(0, explore=False)(*seen).item() < high

"""CCVL: the backup, its bounds and the belief against what can be computed by hand."""

import numpy as np
import pytest

from longstride.core.errors import ConfigError
from longstride.exact.worlds.discounted import DiscountedWorld
from longstride.papers.ccvl.exact import CCVL, RECIPE, LoggedWorlds

PROBLEM = LoggedWorlds(states=6, actions=3, samples=90)


def learned(method: CCVL, problem: LoggedWorlds = PROBLEM, seed: int = 0) -> dict[str, np.ndarray]:
    state = method.start(problem, np.random.default_rng(seed))
    for _ in range(method.backups):
        state = method.step(problem, state, np.random.default_rng(1))
    return state


def test_the_fixed_point_is_that_of_rewards_less_the_bound_for_each_delta_alone() -> None:
    method = CCVL(backups=400)
    state = learned(method)
    for d, delta in enumerate(method.deltas):
        low = state["mean"] - np.sqrt(np.log(1 / delta) / np.maximum(state["n"], 1))
        for w in (0, 1):
            assert np.allclose(state["q"][w, d], DiscountedWorld(state["next"][w], low[w], 0.9).optimal, atol=1e-6)
    assert (np.diff(state["q"], axis=1) >= 0).all()
    alone = learned(CCVL(deltas=(0.05,), backups=400))
    assert np.allclose(alone["q"][:, 0], state["q"][:, method.deltas.index(0.05)], atol=1e-6)


def test_values_exceed_the_true_ones_at_most_as_often_as_delta_says() -> None:
    """Of a single step, with the bound of a Gaussian mean: alpha = sqrt(2) times the noise of a reward."""
    problem = PROBLEM.replace(noise=(1.0, 1.0), discount=0.0)
    method = CCVL(alpha=2**0.5, backups=1, deltas=(0.01, 0.05, 0.2, 0.5))
    over, total = np.zeros(4), 0
    for seed in range(40):
        state = learned(method, problem, seed)
        seen = state["n"] > 0
        over += ((state["q"] > state["rewards"][:, None]) & seen[:, None]).sum((0, 2, 3))
        total += seen.sum()
    rate = over / total
    assert (rate <= method.deltas).all() and (np.diff(rate) > 0).all()
    # what the bound leaves unused: P(N(0, 1) > sqrt(2 log(1 / delta)))
    assert rate == pytest.approx([0.0012, 0.0072, 0.0364, 0.1196], abs=0.02)


def test_an_episode_lowers_the_belief_by_the_squared_errors_of_its_transitions() -> None:
    """One state, one action: every transition is the same but for the noise, which is none."""
    problem = PROBLEM.replace(noise=(0.0, 0.0))
    method = CCVL(deltas=(0.1, 1.0), steps=4, scale=0.5, backups=1)
    state = learned(method, problem)
    state["rewards"], state["q"] = np.full((2, 6, 3), 0.5), np.zeros((2, 2, 6, 3))
    state["q"][:, 1] = 5.0  # 0.5 / (1 - 0.9): right, where 0 is wrong by 0.5 each time
    after = method.step(problem, state, np.random.default_rng(0))
    assert np.allclose(after["log_belief"], [[-4 * 0.25 / 0.5, 0.0]] * 2)
    assert np.allclose(method.belief(after), [[1 / (1 + np.exp(2)), 1 / (1 + np.exp(-2))]] * 2)


def test_the_best_policy_is_worth_1_and_the_uniform_one_0() -> None:
    world = PROBLEM.draw(np.random.default_rng(3))
    both = zip(world["transitions"], world["rewards"], strict=True)
    best = np.stack([DiscountedWorld(p, r, 0.9).optimal.argmax(1)[None] for p, r in both])
    found = PROBLEM.measures(world | {"actions": best, "belief": np.ones((2, 1))})
    assert found == pytest.approx({"value": 1.0, "noisy": 1.0, "calm": 1.0})
    spread = np.broadcast_to(np.arange(3)[None, :, None], (2, 3, 6))
    assert PROBLEM.measures(world | {"actions": spread, "belief": np.full((2, 3), 1 / 3)})["value"] < 0.5


def test_the_recipe_ends_above_its_start_and_descending_deltas_are_refused() -> None:
    state = RECIPE.method.start(RECIPE.problem, np.random.default_rng(0))
    first = RECIPE.problem.measures(RECIPE.method.solution(RECIPE.problem, state))["value"]
    for i in range(RECIPE.iterations):
        state = RECIPE.method.step(RECIPE.problem, state, np.random.default_rng(i))
    assert RECIPE.problem.measures(RECIPE.method.solution(RECIPE.problem, state))["value"] > first + 0.3
    with pytest.raises(ConfigError, match="expected deltas that ascend"):
        CCVL(deltas=(0.5, 0.1)).start(PROBLEM, np.random.default_rng(0))

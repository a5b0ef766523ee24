"""BroRL: its update has the mass balance equation for a first order."""

import numpy as np
import pytest
from scipy.special import softmax

from longstride.core.errors import ConfigError
from longstride.papers.brorl.exact import RECIPE, MassBalance, OneLikely, ascent, mass_balance


def batch(seed: int, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Logits, probabilities, which tokens are right and which were sampled."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=12)
    return logits, softmax(logits), np.arange(12) < 4, rng.random(12) < share


@pytest.mark.parametrize("seed", range(8))
def test_the_change_of_the_mass_of_right_tokens_is_the_equation_to_first_order(seed: int) -> None:
    logits, p, right, sampled = batch(seed, 0.4)
    step = 1e-5
    moved, back = (softmax(logits + s * ascent(p, right, sampled))[right].sum() for s in (step, -step))
    assert (moved - back) / (2 * step) == pytest.approx(mass_balance(p, right, sampled), abs=1e-9)


def test_the_update_is_the_gradient_of_the_rewards_of_distinct_sampled_tokens() -> None:
    logits, p, right, sampled = batch(0, 0.4)
    found, rewards = ascent(p, right, sampled), np.where(right, 1.0, -1.0)
    for j in range(12):
        bump = 1e-6 * (np.arange(12) == j)
        higher, lower = ((rewards * softmax(logits + s * bump))[sampled].sum() for s in (1, -1))
        assert found[j] == pytest.approx((higher - lower) / 2e-6, abs=1e-8)


def test_with_all_tokens_sampled_no_update_lowers_the_mass_and_with_some_it_may() -> None:
    def falls(share: float) -> int:
        return sum(mass_balance(*batch(seed, share)[1:]) < 0 for seed in range(300))

    assert falls(1.0) == 0 and falls(0.2) > 0


def test_a_missed_likely_token_can_cost_more_than_a_rare_one_gains() -> None:
    p, right = np.array([0.3, 0.01, *[0.69 / 30] * 30]), np.arange(32) < 2
    assert mass_balance(p, right, np.arange(32) == 1) < 0
    assert mass_balance(p, right, np.arange(32) < 2) > 0


def test_a_run_counts_the_updates_after_which_the_mass_fell() -> None:
    state = RECIPE.method.start(RECIPE.problem, np.random.default_rng(0))
    measured = RECIPE.problem.measures(state)
    assert measured == {"success": pytest.approx(0.15), "rises": 1.0}
    few, falls = MassBalance(rollouts=16), 0
    for i in range(30):
        before = RECIPE.problem.measures(state)["success"]
        state = few.step(OneLikely(), state, np.random.default_rng(i))
        falls += RECIPE.problem.measures(state)["success"] < before
    assert falls > 0 and RECIPE.problem.measures(state)["rises"] == pytest.approx(1 - falls / 30)


def test_chances_that_leave_no_wrong_token_are_refused() -> None:
    with pytest.raises(ConfigError, match="less than 1"):
        RECIPE.replace(problem=OneLikely(likely=0.5, others=0.5))

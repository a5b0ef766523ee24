"""BroRL: its update has the mass balance equation for a first order."""

from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import make_trajectory, make_turn, rows_of
from scipy.special import softmax

from longstride.core.errors import ConfigError
from longstride.exact.answers import Answers
from longstride.exact.learner import gradient
from longstride.methods import Constant, Reinforce
from longstride.papers.brorl import recipe
from longstride.papers.brorl.exact import RECIPE, MassBalance, OneLikely, ascent, mass_balance
from longstride.papers.brorl.method import DistinctMass, broadened


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


def test_the_credit_is_the_update_of_the_analysis_on_distinct_answers() -> None:
    problem = Answers(tasks=((0.3,),), vocabulary=6)
    logits = problem.begin(np.random.default_rng(0))
    p, given = problem.tree.answers(logits)[0], [0, 2, 2, 5, 0]
    episodes = problem.episodes(logits, np.array([given]))
    found = -gradient(problem.tree, logits, DistinctMass()(episodes), Reinforce(aggregation=Constant(per="episode")))
    np.testing.assert_allclose(
        found[0, 0], ascent(p, problem.tree.rewards[0] == 1, np.isin(np.arange(6), given)), atol=1e-12
    )


def test_with_all_answers_sampled_it_is_the_gradient_of_twice_the_success() -> None:
    problem = Answers(tasks=((0.3,),), vocabulary=3, length=2)
    logits = problem.begin(np.random.default_rng(1))
    episodes = problem.episodes(logits, np.array([[*range(9), 4]]))
    found = -gradient(problem.tree, logits, DistinctMass()(episodes), Reinforce(aggregation=Constant(per="episode")))
    np.testing.assert_allclose(found, problem.tree.gradient(logits, np.full(1, 2.0)), atol=1e-12)


def test_an_answer_that_was_given_before_weighs_nothing_in_its_group_alone() -> None:
    turns = [make_turn([1, 2], behaviour_logprobs=[-0.5, -0.25]), make_turn([3], behaviour_logprobs=[-1.0])]
    played = [
        make_trajectory([turns[k]], float(k), ordinal=n, group=g)
        for n, (k, g) in enumerate(((0, 0), (0, 0), (1, 0), (0, 1)))
    ]
    found = [s.advantages[0] for s in DistinctMass()(played)]
    assert found == pytest.approx([-3 * np.exp(-0.75), 0.0, 3 * np.exp(-1.0), -np.exp(-0.75)])


def test_a_broader_recipe_has_as_many_rollouts_in_all_and_as_many_steps_an_iteration() -> None:
    narrow, broad = recipe.BASE, broadened(recipe.BASE, 64)
    assert broad.group_size == 64 and broad.iterations * broad.episodes_per_iteration == 128 * 128
    assert broad.episodes_per_iteration / broad.group_size == narrow.episodes_per_iteration / narrow.group_size
    steps = [r.episodes_per_iteration / r.learner.batch_samples for r in (narrow, broad)]
    assert steps[0] == steps[1] and broad.learner.lr == pytest.approx(2 * narrow.learner.lr)
    with pytest.raises(ConfigError, match="128 iterations of 16 rollouts a prompt make no whole iterations of 48"):
        broadened(recipe.BASE, 48)
    thirds = broadened(recipe.BASE.replace(iterations=9, group_size=7, episodes_per_iteration=56), 9)
    assert (thirds.iterations, thirds.episodes_per_iteration) == (7, 72), "7 / 9 is no float, and 9 * 7 / 9 is whole"


@pytest.mark.parametrize("credit", ["group_relative", "longstride.papers.brorl.method:DistinctMass"])
def test_it_trains_another_model_on_other_tasks_by_settings_alone(credit: str, tmp_path: Path) -> None:
    run = train_elsewhere("brorl", tmp_path, f"credit.type={credit}", "group_size=8")
    assert any(row["grad_norm"] > 0 for row in rows_of(run, "train"))

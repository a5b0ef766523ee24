"""LlamaRL: what AIPO weighs answers of an older policy by, exactly."""

from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from enumerated import ascent
from helpers import rows_of

from longstride.exact.answers import Answers
from longstride.methods import Constant, GroupRelative, Reinforce
from longstride.methods.ratios import CISPO
from longstride.papers.llamarl.exact import RECIPE

PROBLEM, N = Answers(tasks=((0.3,),), vocabulary=3, decoy=0.3), 3
CREDIT, EPISODES = GroupRelative(normalize="none"), Constant(per="episode")


def policies() -> tuple[np.ndarray, np.ndarray]:
    """The policy as it is, and an older one."""
    old = PROBLEM.begin(np.random.default_rng(0))
    return old + np.array([1.2, -0.4, 0.3]), old


def weighed(weights_K: np.ndarray) -> np.ndarray:
    """(n - 1) / n sum_k w_k (r_k - mean under the older policy) grad log pi_k."""
    now, old = policies()
    tree = PROBLEM.tree
    above_K = tree.rewards[0] - tree.answers(old)[0] @ tree.rewards[0]
    scores_KV = np.eye(3) - tree.answers(now)[0]
    return (N - 1) / N * (weights_K * above_K) @ scores_KV


@pytest.mark.parametrize("cap", [1.0, 1.3, 100.0])
def test_an_answer_weighs_its_probability_or_the_cap_times_the_old_one(cap: float) -> None:
    now, old = policies()
    pi, mu = PROBLEM.tree.answers(now)[0], PROBLEM.tree.answers(old)[0]
    found = ascent(PROBLEM, now, CREDIT, CISPO(aggregation=EPISODES, max=cap), N, sampler=old)
    np.testing.assert_allclose(found[0, 0], weighed(np.minimum(pi, cap * mu)), atol=1e-9)
    exact = PROBLEM.tree.gradient(now, np.array([(N - 1) / N]))
    if cap == 100:
        np.testing.assert_allclose(found, exact, atol=1e-9)
    else:
        assert (pi > cap * mu).any() and np.abs(found - exact).max() > 0.005


def test_uncorrected_it_weighs_its_old_probability() -> None:
    now, old = policies()
    found = ascent(PROBLEM, now, CREDIT, Reinforce(aggregation=EPISODES), N, sampler=old)
    np.testing.assert_allclose(found[0, 0], weighed(PROBLEM.tree.answers(old)[0]), atol=1e-9)
    assert np.abs(found - PROBLEM.tree.gradient(now, np.array([(N - 1) / N]))).max() > 0.005


def test_the_recipe_has_no_floor_and_samples_are_eight_versions_old() -> None:
    loss = RECIPE.method.as_data()["loss"]
    assert (loss["type"], loss["min"], loss["max"], RECIPE.method.as_data()["staleness"]) == ("cispo", 0.0, 4.0, 8)


def test_it_trains_another_model_on_other_tasks_by_settings_alone_and_no_token_is_older_than_it_may_be(
    tmp_path: Path,
) -> None:
    run = train_elsewhere("llamarl", tmp_path, "pool.staleness=2", "iterations=3")
    rows = rows_of(run, "train")
    assert any(row["grad_norm"] > 0 for row in rows)
    assert all(0 <= row["staleness_max"] <= 2 and row["clip_fraction"] <= 1 for row in rows)

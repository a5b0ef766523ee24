"""GRPO's baseline: how near its updates are to the exact gradient."""

import numpy as np
import pytest

from longstride.papers.grpo.exact import CLAIM, RECIPE


def alignment(arm: str) -> float:
    """Mean cosine with the exact gradient of 60 updates from the start."""
    problem, method = CLAIM.arms[arm].problem, CLAIM.arms[arm].method  # type: ignore[attr-defined]
    state, found = method.start(problem, np.random.default_rng(0)), 0.0
    for i in range(60):
        found += float(method.step(problem, state, np.random.default_rng(i))["alignment"]) / 60
    return found


def test_the_mean_of_the_group_takes_noise_away_where_tasks_differ_and_there_alone() -> None:
    assert alignment("group") > alignment("batch") + 0.02
    assert alignment("alike_group") < alignment("alike_batch") + 0.02


def test_alignment_is_the_mean_cosine_of_updates_with_the_exact_gradient() -> None:
    problem, method = RECIPE.problem, RECIPE.method
    state, cosines = method.start(problem, np.random.default_rng(0)), []
    assert problem.measures(state)["alignment"] == 1
    for i in range(3):
        before = state["logits"]
        state = method.step(problem, state, np.random.default_rng(i))
        moved, exact = state["logits"] - before, problem.tree.gradient(before, np.ones(8))  # type: ignore[attr-defined]
        cosines.append((moved * exact).sum() / np.sqrt((moved**2).sum() * (exact**2).sum()))
    assert problem.measures(state)["alignment"] == pytest.approx(np.mean(cosines))

"""Scaling behaviours: the gradient is that of success, and the set is visited again and again."""

import numpy as np
import pytest

from longstride.papers.scaling_behaviors.exact import RECIPE, LinearProblems, Reused, gradient, success


def test_the_expected_update_is_the_gradient_of_success() -> None:
    rng = np.random.default_rng(0)
    weights, problems, right = rng.normal(size=(3, 4)), rng.normal(size=(2, 3)), np.array([1, 3])
    found = gradient(weights, np.repeat(problems, 100_000, 0), np.repeat(right, 100_000), 8, rng) / 100_000
    for j in np.ndindex(3, 4):
        bump = np.zeros((3, 4))
        bump[j] = 1e-6
        slope = 2 * (success(weights + bump, problems, right) - success(weights - bump, problems, right)) / 2e-6
        assert found[j] == pytest.approx(slope, abs=0.01)


def test_passes_over_few_problems_are_memorised() -> None:
    def run(unique: int) -> dict[str, float]:
        method = Reused(unique=unique)
        state = method.start(LinearProblems(), np.random.default_rng(0))
        for i in range(5):
            state = method.step(LinearProblems(), state, np.random.default_rng(i))
        assert state["visited"] == 6400
        return RECIPE.problem.measures(state)

    fresh, repeated = run(6400), run(64)
    assert fresh["tests"] == pytest.approx(fresh["problems"], abs=0.03)
    assert repeated["problems"] > fresh["problems"] > fresh["tests"] - 0.03 > repeated["tests"] + 0.1

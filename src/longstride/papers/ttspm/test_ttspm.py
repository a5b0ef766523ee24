"""TTSPM: its closed form, pass@k without bias, and what few attempts predict."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from longstride.core.errors import ConfigError
from longstride.papers.ttspm.exact import ALIKE, RECIPE, passed, plateau
from longstride.scaling import Geometric
from longstride.stats import pass_at_k


def run(problem: Any, method: Any, iterations: int = 2) -> dict[str, float]:
    state = method.start(problem, np.random.default_rng(0))
    for i in range(iterations):
        state = method.step(problem, state, np.random.default_rng(i + 1))
    return problem.measures(state)


def test_coverage_is_the_mean_of_pass_at_k() -> None:
    right = np.array([0.0, 1, 3, 6])
    for k in (1, 3, 6):
        assert passed(right, 6, k) == pytest.approx(np.mean([pass_at_k(6, int(c), k) for c in right]))
    outcomes = (True, False, False, True, False, False)
    assert passed(np.array([2.0]), 6, 3) == np.mean([any(some) for some in combinations(outcomes, 3)])


@pytest.mark.parametrize(("ceiling", "chance"), [(1.0, 0.15), (0.6, 0.05)])
def test_the_plateau_is_that_of_the_closed_form(ceiling: float, chance: float) -> None:
    coverage = ceiling * (1 - (1 - chance) ** np.arange(1, 1000))
    assert plateau(coverage, 0.002) == np.ceil(np.log(0.002 / (ceiling * chance)) / np.log(1 - chance))


def test_tasks_that_differ_need_the_beta_form_and_tasks_that_are_alike_do_not() -> None:
    one_chance = RECIPE.method.replace(law=Geometric())
    beta, one = run(RECIPE.problem, RECIPE.method), run(RECIPE.problem, one_chance)
    assert beta["accuracy"] > 0.96 > 0.9 > one["accuracy"]
    assert one["octaves"] > 1 > 0.5 > beta["octaves"]
    alike = run(ALIKE, one_chance)
    assert alike["accuracy"] > 0.98 and alike["octaves"] < 0.5


def test_coverage_that_was_not_measured_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs as many in an iteration, got 4"):
        RECIPE.replace(method={"attempts": 4})

"""TTSPM: its closed form, pass@k without bias, and what few attempts predict."""

from itertools import combinations
from math import ceil, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import rows_of

from longstride.core.errors import ConfigError, RunError
from longstride.papers.ttspm.exact import ALIKE, RECIPE, passed, plateau
from longstride.report.curves import curve_of
from longstride.report.fits import fit_runs, fits_as_text
from longstride.scaling import FitError, Geometric, MixedGeometric, Power, fit
from longstride.scaling import plateau as flat_from
from longstride.stats import pass_at_k


def run(problem: Any, method: Any, iterations: int = 2) -> dict[str, float]:
    state = method.start(problem, np.random.default_rng(0))
    for i in range(iterations):
        state = method.step(problem, state, np.random.default_rng(i + 1))
    return problem.measures(method.solution(problem, state))


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


@pytest.mark.parametrize(("ceiling", "chance", "gain"), [(0.8, 0.2, 0.01), (1.0, 0.05, 0.002), (0.5, 0.7, 0.001)])
def test_the_plateau_of_a_fit_is_the_closed_form(ceiling: float, chance: float, gain: float) -> None:
    n = np.arange(1, 17)
    found = fit(Geometric(), n, ceiling * (1 - (1 - chance) ** n), resamples=20)
    # one more attempt after N adds ceiling chance (1 - chance)^N
    expected = ceil(log(gain / (ceiling * chance)) / log(1 - chance))
    attempts, lo, hi = flat_from(found, gain)
    assert attempts == expected and lo <= expected <= hi
    with pytest.raises(FitError, match="between 0 and 1"):
        flat_from(found, 1.5)


def test_coverage_of_a_run_by_attempts_is_fitted_by_one_call_and_the_rest_held_out(tmp_path: Path) -> None:
    settings = ("evaluation.attempts=16", "evaluation.tasks=10", "iterations=1", "episodes_per_iteration=8")
    run = train_elsewhere("ttspm", tmp_path, *settings)
    last = rows_of(run, "eval")[-1]["measures"]
    assert rows_of(run, "train")[-1]["trained_tokens"] == 0
    curve = curve_of(run, "attempts", "pass")
    assert curve.x == (1, 2, 4, 8, 16)
    assert curve.y == pytest.approx([np.mean(last["success"]), *(np.mean(last[f"pass@{n}"]) for n in (2, 4, 8, 16))])
    found = fit_runs([run], Geometric(), "attempts", "pass", until=8, rivals=[MixedGeometric()], gain=0.01)
    (group,) = found["groups"]
    assert len(group["points"]) == 4 and group["held_out"][0][:2] == pytest.approx([16, curve.y[-1]])
    assert group["rivals"].keys() == {"mixed_geometric"} and group["plateau"][0] >= 1
    text = fits_as_text(found)
    assert "adds less than 0.01" in text and "mixed_geometric" in text
    with pytest.raises(ConfigError, match="no law of it"):
        fit_runs([run], Power(), "attempts", "pass", gain=0.01)
    with pytest.raises(ConfigError, match="--until"):
        fit_runs([run], Geometric(), "attempts", "pass", rivals=[Power()])
    with pytest.raises(RunError, match="evaluation.attempts"):
        curve_of(run, "attempts", "within")

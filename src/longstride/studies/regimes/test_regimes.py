"""Regimes: what the exact model is given of each, and predictions that follow from the habits that are kept with them."""

import json
from pathlib import Path

import numpy as np
import pytest

from longstride.studies.regimes.exact import at_the_end, exact_of, predicted
from longstride.studies.regimes.recipe import HORIZONS, REGIMES
from longstride.studies.tti_map.exact import HabitCloning
from longstride.studies.tti_map.trails import Trails

HABITS = {"begins": 0.3, "goes_on": 0.6, "quits": 0.1}
KEPT = Path(__file__).parents[4] / "docs" / "horizons" / "regimes_predicted.json"


@pytest.mark.parametrize("name", REGIMES)
def test_the_exact_model_has_the_distances_the_judge_and_the_favour_of_a_regime(name: str) -> None:
    recipe = exact_of(REGIMES[name], HABITS, HORIZONS["long"])
    problem, method = recipe.problem, recipe.method
    assert isinstance(problem, Trails) and isinstance(method, HabitCloning)
    far, near = (9, 24), {"near": (2, 6)}.get(name, (2, 16))
    assert (problem.nearest + 1, problem.deepest + 1) == (far if name.startswith("far") else near)
    assert problem.false_positive == (0.3 if "judge" in name else 0.0)
    assert method.favour == (2.0 if name == "favour" else 1.0)
    assert (method.begins, method.goes_on, method.quits) == (0.3, 0.6, 0.1)


def test_a_wrong_answer_is_paid_as_often_as_the_judge_errs_and_no_task_is_nearer_than_the_nearest() -> None:
    problem = Trails(nearest=3, deepest=4, false_positive=0.25, horizon=5)
    habits = {"begins": np.array(0.0), "goes_on": np.array(0.0), "quits": np.ones(4)}
    paid = problem.play(habits, 5, 4000, np.random.default_rng(0))
    assert len(paid) / 4000 == pytest.approx(0.25, abs=0.03)  # all of them answer on the first page of the way
    quits = {**habits, "quits": np.zeros(4)}
    assert problem.measures(quits)["success"] == 1.0
    assert len(problem.play(quits, 3, 100, np.random.default_rng(0))) == 0  # three pages and the answer take four turns


def test_a_short_horizon_sees_no_success_where_all_tasks_lie_farther() -> None:
    recipe = exact_of(REGIMES["far"], HABITS, HORIZONS["short"])
    before = recipe.problem.measures(recipe.method.start(recipe.problem, np.random.default_rng(0)))["supported"]
    assert at_the_end(recipe, 0) == pytest.approx(before)


def test_the_kept_predictions_follow_from_the_kept_habits() -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))["regimes"]
    assert kept.keys() == REGIMES.keys()
    assert predicted(REGIMES["near"], kept["near"]["habits"]) == pytest.approx(kept["near"]["success"])

"""Schedules of the horizon: what a sweep leaves, what is tuned, and distances that training never has."""

import pytest

from longstride.claims.tuning import axes
from longstride.core.errors import ConfigError
from longstride.envs.dial import Dial
from longstride.run.recipe import Recipe
from longstride.setups.dial import LONG
from longstride.studies.schedules.distance import FAR, FAR_TURNS, TESTED
from longstride.studies.schedules.distance import RECIPE as DISTANCE
from longstride.studies.schedules.recipe import CLAIM, RECIPE, SCHEDULES, SWEEP, SWEPT, under
from longstride.studies.worth.method import Onward


def test_a_sweep_spends_in_all_what_a_schedule_spends() -> None:
    whole = RECIPE.episodes_per_iteration
    for name, horizons in (("best_fixed", 1), ("half", 2), ("third", 3), ("swept", len(SWEEP))):
        left = SWEPT[name].episodes_per_iteration
        assert whole - horizons < left * horizons <= whole


def test_every_arm_is_tuned_over_the_rate_and_those_of_a_sweep_alone_over_the_horizon() -> None:
    for arm in CLAIM.arms:
        assert ("budget.turns" in axes(CLAIM, arm)) == (arm in SWEPT) and "learner.lr" in axes(CLAIM, arm)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_stays_within_the_long_horizon_and_is_the_only_thing_that_differs(name: str) -> None:
    arm = under(RECIPE, SCHEDULES[name])
    assert (arm.budget.most("turns", arm.iterations) or 0) in range(SWEEP[1], LONG + 1)
    assert isinstance(arm.sampler, Onward) == (name == "worth")
    assert arm.replace(budget=RECIPE.budget, sampler=RECIPE.sampler) == RECIPE


def test_distances_of_the_test_reach_beyond_those_of_training_within_its_turns() -> None:
    tasks = DISTANCE.tasks
    assert isinstance(DISTANCE, Recipe) and isinstance(tasks, Dial)
    nearest, farthest = tasks.distances
    assert sum(nearest <= d <= farthest for d in TESTED) >= 3 and sum(d > farthest for d in TESTED) == 2
    most = DISTANCE.test_budget.most("turns", 1)
    assert most is not None and max(TESTED) < most and max(FAR) < FAR_TURNS
    assert {t.optimal for t in tasks.held_out(DISTANCE.evaluation.tasks)} == set(TESTED)


def test_a_horizon_that_is_no_number_of_turns_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"budget\.turns"):
        SWEPT["swept"].replace(budget={"turns": 0})

"""Schedules: the hand-computed vectors, and what holds for any numbers."""

import pytest
from helpers import Collected, make_trajectory
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.curriculum import BudgetSchedule, Fixed, Multiplicative, OnPlateau, Schedule
from longstride.curriculum.schedules import Linear, PerDifficulty, StepList
from longstride.papers.scaling_inter.method import StepSchedule
from longstride.papers.siri.method import Cosine, Stair, StairCosine


def turns(schedule: Schedule, *iterations: int) -> list[int]:
    return [schedule.at(i) for i in iterations]


def test_fixed_never_changes():
    assert turns(Fixed(limit=10), 1, 2, 1000) == [10, 10, 10]


def test_multiplicative_gives_the_horizons_of_the_paper():
    assert turns(Multiplicative(start=10, limit=30), 1, 2, 3, 4, 5) == [10, 20, 30, 30, 30]


def test_step_list_gives_the_horizons_of_the_released_scripts():
    assert turns(StepList(steps=((1, 10), (3, 20), (4, 30))), 1, 2, 3, 4, 5, 99) == [10, 20, 20, 30, 30, 30]


def test_a_step_schedule_changes_with_every_80th_update():
    assert turns(StepSchedule(steps=(8, 12, 15), every=80), 1, 79, 80, 159, 160, 500) == [8, 8, 12, 12, 15, 15]


def test_cyclic_budgets_go_down_and_up():
    down_and_up = {"high": 160, "low": 64, "period": 8}
    assert turns(Stair(**down_and_up), 1, 4, 5, 8, 9) == [160, 160, 64, 64, 160]
    assert turns(Cosine(**down_and_up), *range(1, 10)) == [160, 146, 112, 78, 64, 78, 112, 146, 160]
    # an eighth of a cycle on either side of both ends stands still; between, the angle goes twice as fast
    assert turns(StairCosine(**down_and_up), *range(1, 10)) == [160, 160, 112, 64, 64, 64, 112, 160, 160]


def test_linear_holds_each_value_for_an_interval_and_reaches_the_limit_at_the_cap():
    schedule = Linear(start=10, limit=30, interval=5, cap=21)
    assert turns(schedule, 1, 5, 6, 10, 11, 16, 20, 21, 50) == [10, 10, 15, 15, 20, 25, 25, 30, 30]
    assert turns(Linear(start=1, limit=4, interval=1, cap=4), 1, 2, 3, 4) == [1, 2, 3, 4]


def test_linear_with_a_cap_inside_an_interval_jumps_there():
    assert turns(Linear(start=10, limit=30, interval=5, cap=8), 7, 8) == [24, 30]


def test_each_difficulty_has_a_schedule_of_its_own():
    schedule = PerDifficulty(easy=Fixed(limit=10), medium=Multiplicative(start=10, limit=20), hard=Fixed(limit=30))
    assert [schedule.at(1, "easy"), schedule.at(1, "medium"), schedule.at(1, "hard")] == [10, 10, 30]
    assert schedule.at(2, "medium") == 20


def after(*iterations: tuple[int, int]) -> Collected:
    """The experience of iterations of so many successes of so many episodes, from 1 on, each with a failed episode."""
    found = []
    for i, (successes, episodes) in enumerate(iterations, 1):
        found += [make_trajectory(reward=float(k < successes), iteration=i) for k in range(episodes)]
        found.append(make_trajectory(reward=1.0, iteration=i, stop=StopReason.INFRA_FAILURE))
    return Collected(found)


def horizons(schedule: Schedule, *iterations: tuple[int, int]) -> list[int]:
    """The limits of an iteration more than were played, each asked for when those before it were."""
    past, found = after(), []
    for i in range(len(iterations) + 1):
        past.trajectories = after(*iterations[:i]).trajectories
        found.append(schedule.at(i + 1, "easy", past))
    return found


def test_on_plateau_grows_where_success_was_no_better_than_the_best_for_as_long_as_its_patience():
    schedule = OnPlateau(start=4, limit=11, step=4, patience=2, better=0.1)
    rises = [(0, 10), (2, 10), (4, 10)]
    flat = [(5, 10), (4, 10)]  # 0.5 is not above 0.4 by more than 0.1
    assert horizons(schedule, *rises, *flat) == [4, 4, 4, 4, 4, 8]
    # the first iteration at 8 is its first best, however low; a better one begins the count anew
    later = [(1, 10), (1, 10), (3, 10), (3, 10), (0, 10), (9, 10), (9, 10), (9, 10)]
    assert horizons(schedule, *rises, *flat, *later)[5:] == [8, 8, 8, 8, 8, 11, 11, 11, 11]


def test_on_plateau_learns_nothing_of_an_iteration_in_which_every_episode_failed():
    schedule = OnPlateau(start=1, limit=3, step=1, patience=1)
    assert horizons(schedule, (1, 2), (0, 0), (0, 0), (1, 2)) == [1, 1, 1, 1, 2]


def test_on_plateau_moves_once_an_iteration_however_often_it_is_asked():
    schedule, past = OnPlateau(start=1, limit=9, step=1, patience=1), after((1, 2), (1, 2))
    schedule.at(1, "easy", Collected())
    kept = past.memory(schedule)
    for i, expected in ((1, 1), (2, 1), (3, 2)):
        assert {schedule.at(i, d, past) for d in ("easy", "medium", "hard", "easy")} == {expected}
        assert kept["iteration"] == i


def test_an_adaptive_schedule_is_known_to_stay_below_its_limit_and_is_refused_without_experience():
    schedule = OnPlateau(start=1, limit=9, step=1)
    budget = BudgetSchedule(turns=PerDifficulty(easy=Fixed(limit=2), medium=schedule, hard=Fixed(limit=3)), tokens=5)
    assert budget.adaptive and not BudgetSchedule(turns=Multiplicative(start=2, limit=8)).adaptive
    assert (budget.most("turns", 3), budget.most("tokens", 3), budget.most("seconds", 3)) == (9, 5, None)
    assert BudgetSchedule(turns=Multiplicative(start=2, limit=8)).most("turns", 3) == 6
    with pytest.raises(ConfigError, match="on_plateau goes by the episodes of earlier iterations"):
        schedule.at(2)


@given(start=st.integers(1, 60), more=st.integers(0, 60), step=st.integers(1, 9), cap=st.integers(2, 40))
def test_growing_schedules_are_monotonic_bounded_and_reach_their_limit(start: int, more: int, step: int, cap: int):
    limit = start + more
    for schedule in (
        Multiplicative(start=start, limit=limit),
        Linear(start=start, limit=limit, interval=step, cap=cap),
    ):
        horizons = turns(schedule, *range(1, 130))
        assert horizons == sorted(horizons)
        assert start <= horizons[0] <= horizons[-1] == limit


@pytest.mark.parametrize(
    "schedule",
    [
        PerDifficulty(
            easy=Fixed(limit=4), medium=Multiplicative(start=2, limit=9), hard=StepSchedule(steps=(1, 2), every=3)
        ),
        StepList(steps=((1, 10), (3, 20))),
        Linear(start=1, limit=4, interval=1, cap=4),
        OnPlateau(start=1, limit=4, step=2, patience=3, better=0.1),
    ],
)
def test_a_schedule_is_rebuilt_from_its_data(schedule: Schedule):
    assert build(Schedule, schedule.as_data()) == schedule


def test_a_limit_below_the_start_is_refused():
    with pytest.raises(ConfigError, match=r"horizon: limit must be at least start \(10\), got 5"):
        build(Schedule, {"type": "multiplicative", "start": 10, "limit": 5}, "horizon")


@pytest.mark.parametrize("steps", [[], [(3, 10), (1, 20)], [(1, 0)]])
def test_a_step_list_that_is_empty_or_out_of_order_or_without_turns_is_refused(steps: list[tuple[int, int]]):
    with pytest.raises(ConfigError, match="steps"):
        build(Schedule, {"type": "step_list", "steps": steps})


def test_the_family_itself_is_no_schedule():
    with pytest.raises(TypeError):
        Schedule()  # pyright: ignore[reportAbstractUsage]
    with pytest.raises(ValidationError):
        Fixed(limit=0)


def test_every_limit_of_a_budget_is_a_number_or_a_schedule():
    budget = BudgetSchedule(turns=Multiplicative(start=4, limit=10), tokens=Fixed(limit=50), turn_tokens=9, seconds=2.5)
    assert budget.at(2, "easy") == Budget(turns=8, tokens=50, turn_tokens=9, seconds=2.5)
    assert budget.at(9, "hard").turns == 10
    assert build(BudgetSchedule, budget.as_data()) == budget


def test_a_limit_that_is_left_out_does_not_bind():
    budget = BudgetSchedule(turns=3).at(1, "easy")
    assert (budget.tokens, budget.tool_calls, budget.seconds) == (None, None, None)


def test_a_budget_names_its_limits_by_difficulty():
    turns_of = PerDifficulty(easy=Fixed(limit=1), medium=Fixed(limit=2), hard=Fixed(limit=3))
    assert BudgetSchedule(turns=turns_of).limits("turns", 1) == {"easy": 1, "medium": 2, "hard": 3}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"turns": 0}, "turns"),
        ({"turns": {"type": "fixd", "limit": 3}}, "did you mean 'fixed'"),
        ({"turn": 3}, "did you mean 'turns'"),
        ({"seconds": -1.0}, "seconds"),
    ],
)
def test_a_budget_that_cannot_be_is_refused_with_its_place(data: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        build(BudgetSchedule, data, "budget")

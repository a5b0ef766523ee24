"""TTI where tasks lie far: what its arms differ in."""

from longstride.papers.tti.far import CLAIM, RECIPE


def test_every_schedule_ends_at_the_turns_of_the_test() -> None:
    for name in ("slow", "long", "released"):
        budget = CLAIM.arms[name].budget
        assert budget.at(RECIPE.iterations, "hard").turns == RECIPE.test_budget.at(1, "hard").turns == 48


def test_a_farthest_task_can_be_done_within_the_turns_of_the_test_and_not_within_those_of_the_start() -> None:
    assert RECIPE.budget.at(1, "hard").turns < RECIPE.tasks.distances[1] < RECIPE.test_budget.at(1, "hard").turns

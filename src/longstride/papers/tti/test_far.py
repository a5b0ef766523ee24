"""TTI where tasks lie far: what its arms differ in."""

from longstride.envs.dial import Dial
from longstride.papers.tti.far import CLAIM, RECIPE
from longstride.run.recipe import Recipe


def test_every_schedule_ends_at_the_turns_of_the_test() -> None:
    for name in ("slow", "long"):
        arm = CLAIM.arms[name]
        assert isinstance(arm, Recipe)
        assert arm.budget.at(arm.iterations, "hard").turns == arm.test_budget.at(1, "hard").turns == 48


def test_a_farthest_task_can_be_done_within_the_turns_of_the_test_and_not_within_those_of_the_start() -> None:
    assert isinstance(RECIPE.tasks, Dial)
    assert RECIPE.budget.at(1, "hard").turns < RECIPE.tasks.distances[1] < RECIPE.test_budget.at(1, "hard").turns

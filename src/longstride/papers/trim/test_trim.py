"""TRIM: steps are routed as computed by hand, and the belief's plan is worth what it says."""

import numpy as np
import pytest

from longstride.exact.experiment import ExactRecipe
from longstride.exact.worlds.routing import GRID, Routed, needed, planned, said, seen
from longstride.papers.trim.exact import CLAIM, ByBelief, ByScore, ByTask, RoutedTasks, Router
from longstride.rewards.simulated import StepScorer


def played(problem: RoutedTasks, level: int, router: Router, n: int = 20_000) -> tuple[float, float]:
    """Share of tasks that are solved, and steps of the strong model in each."""
    weak, strong = map(float, problem.chances[:, level])
    tasks = Routed((weak, strong), problem.noise, n, np.random.default_rng(0))
    router.run(problem, level, tasks)
    return float(tasks.right_N.mean()), float(tasks.strong_N.mean())


def test_scores_are_those_of_the_step_scorer() -> None:
    rng = np.random.default_rng(0)
    right, error = StepScorer(noise=0.7).see(1, None, 0.0, rng)
    assert said(np.array(True), np.array(error), 0.7) == pytest.approx(right)
    wrong, error = StepScorer(noise=0.7).see(1, 0, 0.0, rng)
    assert said(np.array(False), np.array(error), 0.7) == pytest.approx(wrong)
    assert said(np.array([True, False]), np.array([1.0, -3.0]), float("inf")).tolist() == [0.5, 0.5]


def test_a_scorer_that_knows_pays_for_wrong_steps_alone() -> None:
    problem = RoutedTasks(levels=(0.3,), length=4, noise=0.05)
    weak, strong = problem.chances[:, 0]
    # a step is right in the end with this chance; after a wrong one all further ones are given to the strong model
    step = weak + (1 - weak) * strong
    asked = sum(step**k * (1 - weak) + (1 - step**k) for k in range(4))
    assert played(problem, 0, ByScore(threshold=0.5)) == pytest.approx((step**4, asked), abs=0.02)


def test_whole_tasks_go_where_the_strong_model_gains_most() -> None:
    problem = RoutedTasks(levels=(0.02, 0.3, 0.9))
    gains = np.diff(problem.chances**6, axis=0)[0]
    assert gains.argmax() == 1
    assert [played(problem, level, ByTask(levels=1), 10)[1] for level in range(3)] == [0, 6, 0]
    assert played(problem, 1, ByTask(levels=1))[0] == pytest.approx(problem.chances[1, 1] ** 6, abs=0.01)
    favoured = {
        favour: [played(problem, k, ByTask(levels=1, favour=favour), 10)[1] for k in range(3)] for favour in (-9, 9)
    }
    assert favoured == {-9: [6, 0, 0], 9: [0, 0, 6]}


def test_needed_steps_lie_on_the_line_through_the_routers() -> None:
    # 0.2 + 0.95 * 0.4 = 0.58: two thirds of the way from (0.3, 0.5) to (0.6, 0.62)
    assert needed(np.array([0.6, 0.3]), np.array([0.62, 0.5]), 0.2, 0.6, 0.95) == pytest.approx(0.5)
    assert needed(np.array([0.5]), np.array([0.4]), 0.2, 0.6, 0.95) == pytest.approx(0.95)


def test_beliefs_after_a_score_follow_bayes() -> None:
    # right 0.8 * 0.5 * 0.9, last wrong 0.8 * 0.5 * 0.1, lost 0.2 * 0.1
    right, before = seen(0.8, 0.5, 0.9)
    assert (right, before) == pytest.approx((0.36 / 0.42, 0.40 / 0.42))


def test_the_belief_is_worth_what_it_planned_and_more_than_any_threshold() -> None:
    problem = RoutedTasks(levels=(0.1,))
    weak, strong = map(float, problem.chances[:, 0])
    price = 0.03
    keep, again = planned(weak, strong, problem.noise, problem.length + 1, price)[0]
    # a first step that is right for certain: what is left is a task of `length` steps
    worth = float(keep[-1])
    won, asked = played(problem, 0, ByBelief(price=price))
    assert won - price * asked == pytest.approx(worth, abs=0.01)
    thresholds = [played(problem, 0, ByScore(threshold=k)) for k in (0.1, 0.3, 0.5, 0.7)]
    assert worth > max(won - price * asked for won, asked in thresholds)
    assert (again <= 1).all() and (np.diff(keep) > 0).all() and len(keep) == len(GRID)


def test_no_price_is_too_high_to_be_refused() -> None:
    assert played(RoutedTasks(), 0, ByBelief(price=1.0), 100)[1] == 0


def test_steps_are_saved_where_the_scorer_sees_and_not_where_it_does_not() -> None:
    def saved(arm: str) -> float:
        recipe = CLAIM.arms[arm]
        assert isinstance(recipe, ExactRecipe)
        state = recipe.method.start(recipe.problem, np.random.default_rng(0))
        assert recipe.problem.measures(state)["saved"] == 0
        return recipe.problem.measures(recipe.method.step(recipe.problem, state, np.random.default_rng(1)))["saved"]

    assert saved("noise_0.5_by_score") > saved("by_task") + 0.2 > saved("noise_4_by_score") + 0.2

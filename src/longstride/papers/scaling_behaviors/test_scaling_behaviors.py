"""Scaling behaviours: the gradient is that of success, and the set is visited again and again."""

import random
from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import Collected, make_task, rows_of, trajectories_of

from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.papers.scaling_behaviors.exact import RECIPE, LinearProblems, Reused, gradient, success
from longstride.papers.scaling_behaviors.method import FixedSet
from longstride.report.fits import fit_runs
from longstride.scaling import RisingPower, Sigmoid


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


class Endless:
    """A new task every time."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [make_task(str(rng.getrandbits(40))) for _ in range(n)]


def test_a_fixed_set_is_visited_in_turn_whatever_the_size_of_an_iteration() -> None:
    experience, curriculum, rng = Collected(), FixedSet(unique=3), random.Random(0)
    visits = [task.id for n in (2, 4, 1) for task in curriculum.draw(Endless(), n, rng, experience)]
    assert len(set(visits)) == 3 and visits == [visits[k % 3] for k in range(7)]
    # another run has another set
    assert {t.id for t in curriculum.draw(Endless(), 3, random.Random(1), Collected())}.isdisjoint(visits)


class Listed:
    """Ten tasks, drawn with replacement."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [make_task(str(k)) for k in rng.choices(range(10), k=n)]


def test_a_set_has_as_many_different_tasks_as_it_says_and_a_source_with_fewer_is_refused() -> None:
    visits = FixedSet(unique=10).draw(Listed(), 20, random.Random(0), Collected())
    assert len({task.id for task in visits[:10]}) == 10 and visits[:10] == visits[10:]
    with pytest.raises(ConfigError, match=r"Listed has only 10 different tasks; set curriculum\.unique=10 or fewer"):
        FixedSet(unique=11).draw(Listed(), 1, random.Random(0), Collected())


def test_it_trains_another_model_on_few_tasks_by_settings_alone_and_its_error_is_fitted(tmp_path: Path) -> None:
    settings = ("curriculum.unique=3", "iterations=8", "evaluation.every=1", "evaluation.tasks=16")
    run = train_elsewhere("scaling_behaviors", tmp_path, *settings)
    assert any(row["grad_norm"] > 0 for row in rows_of(run, "train"))
    played = trajectories_of(run)
    assert len({t.task.id for t in played}) <= 3 and len(played) == 8 * 16
    found = fit_runs([run], RisingPower(), "iteration", "error", until=5, rivals=[Sigmoid(most=1.0)])
    (group,) = found["groups"]
    assert group["points"][0][1] == pytest.approx(1 - rows_of(run, "eval")[1]["summary"]["success"])
    assert {row[0] for row in group["held_out"]} == {6, 7, 8} and group["rivals"]["sigmoid"] >= 0

"""ScaleRL: the first half of a run predicts its end, and what was measured too early is refused; tasks that are solved
are not drawn again."""

import random
from pathlib import Path

import numpy as np
import pytest
from elsewhere import SMALL, save_model, train_elsewhere
from helpers import Collected, make_task, make_trajectory, rows_of

from longstride.cli.main import main
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.exact.forecasts import forecast
from longstride.papers.scalerl.exact import LONGEST, RECIPE, Forecast, Watched, spread
from longstride.papers.scalerl.method import NoPositiveResampling
from longstride.papers.scalerl.recipe import RECIPE as LANGUAGE
from longstride.report.fits import fit_runs
from longstride.scaling import Power, Sigmoid


@pytest.fixture(scope="module")
def state() -> dict[str, np.ndarray]:
    state = RECIPE.method.start(RECIPE.problem, np.random.default_rng(0))
    for i in range(RECIPE.iterations):
        state = RECIPE.method.step(RECIPE.problem, state, np.random.default_rng(i))
    return state


def test_a_sigmoid_predicts_the_end_from_the_first_half_and_a_power_law_does_not(state: dict) -> None:
    sigmoid = RECIPE.problem.measures(state)
    power = RECIPE.problem.replace(law=Power()).measures(state)
    assert sigmoid["accuracy"] > 0.94 > 0.9 > power["accuracy"] and not sigmoid["refused"]
    assert sigmoid["success"] == pytest.approx(0.78, abs=0.04)  # a fifth of the problems cannot be solved


def test_a_run_that_ends_before_its_midpoint_is_refused() -> None:
    before = Sigmoid()(np.arange(1.0, 20), np.array([0.03, 0.8, 40, 2]))
    found = forecast(Sigmoid(), np.arange(1, 20), before, 80, 0.6)
    assert found["refused"] == 1
    few = forecast(Sigmoid(), [1, 2, 3], [0.1, 0.2, 0.3], 80, 0.6)
    assert few == {"accuracy": pytest.approx(0.7), "within": 0.0, "refused": 1.0}
    assert forecast(Sigmoid(), [], [], 1, 0.0)["accuracy"] == 1


def test_errors_may_be_shares_of_a_value() -> None:
    x, y = np.array([1.0, 2, 4, 8, 16]), 100 + 900 / np.array([1.0, 2, 4, 8, 16])
    truth = 100 + 900 / 32
    found = forecast(Power(), x, y, 32, truth, relative=True)
    assert found == {"accuracy": pytest.approx(1, abs=1e-4), "within": 1.0, "refused": 0.0}
    assert forecast(Power(), x, y, 32, 2 * truth, relative=True)["accuracy"] == pytest.approx(0.5, abs=1e-3)


def test_what_is_measured_is_sampled_and_kept_by_iteration(state: dict) -> None:
    assert int(state["iteration"]) == RECIPE.iterations and not state["curve"][RECIPE.iterations + 1 :].any()
    assert state["curve"][RECIPE.iterations] == pytest.approx(float(state["success"]), abs=0.03)
    assert state["curve"][RECIPE.iterations] != float(state["success"])


def test_chances_are_quantiles() -> None:
    logs = np.log(spread(40, 0.02, 1.0))
    assert logs.mean() == pytest.approx(np.log(0.02), abs=0.01) and logs.std() == pytest.approx(1, abs=0.05)


def test_what_does_not_fit_is_refused() -> None:
    method, problem = Watched(batch=2, rollouts=2, budget=4), Forecast(problems=2, answers=2)
    late = method.start(problem, np.random.default_rng(0)) | {"iteration": np.array(float(LONGEST))}
    with pytest.raises(ConfigError, match="ask for no more"):
        method.step(problem, late, np.random.default_rng(0))


def test_credit_is_divided_by_the_deviation_of_the_advantages_of_the_batch() -> None:
    batch = [make_trajectory(1, r, ordinal=n, group=n // 2) for n, r in enumerate((1.0, 0.0, 1.0, 1.0))]
    found = [s.advantages[0] for s in LANGUAGE.credit(batch)]  # 1/2, -1/2, 0, 0 over sqrt(1/8); of rewards sqrt(3/16)
    assert found == pytest.approx([2**0.5, -(2**0.5), 0, 0])


class Listed:
    """Four tasks, drawn in turn."""

    def __init__(self) -> None:
        self.next = 0

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        self.next += n
        return [make_task(str(k % 4)) for k in range(self.next - n, self.next)]


def played(task: str, won: int, lost: int) -> list:
    return [make_trajectory(reward=float(k < won), success=k < won, task=make_task(task)) for k in range(won + lost)]


def test_a_task_that_is_solved_nearly_always_is_not_drawn_again() -> None:
    before = Collected([*played("0", 9, 1), *played("1", 8, 2), *played("2", 0, 10)])
    found = NoPositiveResampling().draw(Listed(), 6, random.Random(0), before)
    assert len(found) == 6 and {task.id for task in found} == {"1", "2", "3"}
    stricter = NoPositiveResampling(solved=0.95).draw(Listed(), 4, random.Random(0), before)
    assert [task.id for task in stricter] == ["0", "1", "2", "3"]


def test_where_all_tasks_are_solved_they_come_again() -> None:
    before = Collected([t for k in range(4) for t in played(str(k), 10, 0)])
    assert len(NoPositiveResampling().draw(Listed(), 3, random.Random(0), before)) == 3


def test_it_trains_another_model_on_other_tasks_by_settings_alone_and_its_curve_is_fitted(tmp_path: Path) -> None:
    run = train_elsewhere("scalerl", tmp_path, "iterations=8", "evaluation.every=1", "evaluation.tasks=40")
    assert any(row["grad_norm"] > 0 for row in rows_of(run, "train"))
    found = fit_runs([run], Power(), "iteration", "success", until=6, since=2)
    (group,) = found["groups"]
    success = {row["iteration"]: row["summary"]["success"] for row in rows_of(run, "eval")}
    assert group["points"] == [[i, success[i]] for i in range(2, 7)]
    assert [row[:2] for row in group["held_out"]] == [[i, success[i]] for i in (7, 8)]
    assert group["error"] == pytest.approx(np.mean([abs(row[1] - row[2]) for row in group["held_out"]]))


def test_a_run_of_another_model_and_what_laws_foretell_of_it_are_one_command(tmp_path: Path) -> None:
    own = [f"run.model={save_model(tmp_path / 'model')}", *(f"run.{setting}" for setting in SMALL)]
    few = ["run.iterations=10", "run.evaluation.every=1", "run.evaluation.tasks=20", "run.curriculum.type=uniform"]
    laws = "readings={power={law={type='power'}}, stays={until=0.5}}"
    out = tmp_path / "foretold"
    assert main(["train", "longstride.papers.scalerl.recipe:ARM", "--out", str(out), *own, *few, laws, "seeds=1"]) == 0
    power, stays = rows_of(out, "eval")
    success = [row["summary"]["success"] for row in rows_of(out / "runs" / "all-0", "eval")]
    assert len(success) == 11 and stays["measures"]["reached"] == [success[-1]]
    assert stays["measures"]["error"] == pytest.approx([np.mean([abs(s - success[5]) for s in success[6:]])])
    assert power["measures"].keys() == stays["measures"].keys() and power["strategy"] == "power"

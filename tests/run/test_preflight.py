"""What is refused before anything is played, and what a run says of iterations that lead nowhere."""

import warnings
from math import nan
from pathlib import Path
from typing import Any

import pytest
from silent_world import RECIPE, Tasks

import longstride as ls
from longstride.cli.main import main
from longstride.core.config import dump_toml
from longstride.methods import Credit, OnPolicy
from longstride.papers.scaler.method import Controlled
from longstride.papers.webrl.method import FailedTasks


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"budget": {"turns": 500}}, r"budget.turns goes up to 500, and base-wander sees 1280 tokens.*at most 4\d\d"),
        ({"budget": {"turns": ls.Multiplicative(start=400, limit=900)}}, "budget.turns goes up to 900"),
        ({"test_budget": {"turns": 900}}, "test_budget.turns goes up to 900"),
        ({"budget": {"turn_tokens": 1280}}, r"budget.turn_tokens is 1280, and base-wander sees 1280.*at most 12\d\d"),
        ({"evaluation": {"tasks": 4}}, "evaluation.tasks is 4, and the task set has 3.*set evaluation.tasks=3"),
        ({"tasks": {"held": 0}}, "evaluation.tasks is 3, and the task set has 0 held-out tasks; add some"),
        ({"stored_run": "nowhere"}, "stored_run: there is no nowhere; give the folder of a run"),
        ({"curriculum": FailedTasks()}, "new tasks by a method .* and Tasks has none: write one, as"),
        ({"curriculum": Controlled()}, "moves the levels of environments, and tasks Tasks have none; take"),
    ],
)
def test_limits_that_nothing_can_hold_are_refused_and_leave_no_folder(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    folder = tmp_path / "run"
    with pytest.raises(ls.ConfigError, match=says):
        ls.train(RECIPE, folder, ls.Silent(), **changes)
    assert not folder.exists()


@pytest.mark.slow
def test_a_longest_horizon_that_fits_is_played(tmp_path: Path) -> None:
    with pytest.raises(ls.ConfigError) as e:
        ls.train(RECIPE, tmp_path / "run", ls.Silent(), test_budget={"turns": 900})
    most = int(str(e.value).partition("at most ")[2].partition(",")[0])
    run = ls.train(RECIPE.replace(budget={"turns": most}), tmp_path / "run", ls.Silent(), iterations=1)
    assert run.recipe.budget.turns == most  # pyright: ignore[reportAttributeAccessIssue]


def test_what_stood_in_the_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ls.ConfigError):
        ls.train(RECIPE, tmp_path, ls.Silent(), evaluation={"tasks": 9})
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_a_run_that_trains_nothing_says_so_at_once_and_stops(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught, pytest.raises(ls.RunError) as e:
        warnings.simplefilter("always")
        ls.train(RECIPE, tmp_path / "run", ls.Silent())
    said = [str(w.message) for w in caught if issubclass(w.category, ls.LongstrideWarning)]
    why = "replay chose no episode; 0 of 2 episodes were successes, and every reward is 0"
    assert said == [f"iteration {i}: nothing was trained: {why}" for i in (1, 2)]
    assert "2 iterations in a row led nowhere; iteration 1: nothing was trained" in str(e.value)
    run = ls.load_run(tmp_path / "run")
    assert run.metrics.where(kind="train").column("iteration") == [1, 2]
    assert len(run.resume(ls.Silent(), patience=9).metrics.where(kind="train")) == 4


class NoNumbers(Credit):
    def advantages(self, played):
        return [[nan] * t.length for t in played]


def test_a_run_whose_steps_are_all_skipped_trains_nothing_and_says_so(tmp_path: Path) -> None:
    changes = {"credit": NoNumbers(), "replay": OnPolicy(), "iterations": 1}
    with pytest.warns(ls.LongstrideWarning, match="nothing was trained: all 1 steps were skipped"):
        ls.train(RECIPE, tmp_path / "run", ls.Silent(), **changes)


class OneLong(Tasks):
    def _task(self, k: int) -> ls.Task:
        task = super()._task(k)
        return task.model_copy(update={"goal": "search " * 2000}) if k == 1 else task


def test_prompts_that_leave_no_room_are_said_once(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ls.train(RECIPE, tmp_path / "run", ls.Silent(), tasks=OneLong(), iterations=2, patience=9)
    said = [str(w.message) for w in caught if "fill the context" in str(w.message)]
    why = "episodes have no turn, as their prompts fill the context of the model, and count as not solved"
    advice = "the first: task '1'. Shorten such prompts or leave them out"
    assert said == [f"evaluation before training: 1 of 3 {why}; {advice}", f"iteration 1: 1 of 2 {why}; {advice}"]


def test_a_run_in_which_every_episode_fails_names_the_first_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = tmp_path / "broken.toml"
    toml.write_text(dump_toml(RECIPE.replace(tasks={"broken": True}, iterations=2)))
    assert main(["train", str(toml), "--out", str(tmp_path / "run")]) == 2
    _, err = capsys.readouterr()
    cause = "the first: the world is gone (task 0, turn 0)"
    assert f"warning: evaluation after iteration 0: all 3 episodes failed; {cause}" in err
    assert f"warning: iteration 1: all 2 episodes failed; {cause}" in err
    assert f"error: 2 iterations in a row led nowhere; iteration 1: all 2 episodes failed; {cause}" in err
    report = (tmp_path / "run" / "report.html").read_text()
    assert "all 10 episodes failed for reasons" in report and "report.html" in err


def test_an_iteration_that_only_rolls_out_is_no_iteration_that_led_nowhere(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ls.LongstrideWarning)
        run = ls.train(RECIPE, tmp_path / "run", ls.Silent(), learner={"epochs": 0})
    assert len(run.metrics.where(kind="train")) == 4


def test_words_that_the_vocabulary_lacks_are_named_once_and_those_of_errors_never(tmp_path: Path) -> None:
    with pytest.warns(ls.LongstrideWarning) as caught:
        ls.train(RECIPE, tmp_path / "run", ls.Silent(), iterations=1, tasks={"words": "search the zyzzyva or the qat"})
    said = [str(w.message) for w in caught if "vocabulary" in str(w.message)]
    assert len(said) == 1 and "lacks 'zyzzyva', 'qat': the policy sees them all as <unk>" in said[0]

"""A control recipe in a run folder: rows as the report and claims read them, and an exact resume."""

import json
from pathlib import Path
from typing import Any

import pytest

from longstride.cli.main import main
from longstride.control import (
    SAC,
    Agent,
    Conservative,
    ControlLoop,
    Gather,
    Given,
    Level,
    Phase,
    PolicyValue,
    algorithms,
)
from longstride.control import loop as loops
from longstride.control.envs import PointMaze, play
from longstride.control.policies import Gaussian
from longstride.control.recipe import ControlEvaluation, ControlRecipe, train_control
from longstride.core.config import dump_toml, load_toml, override, resolve
from longstride.core.errors import RunError
from longstride.curriculum import Additive, Fixed
from longstride.models.mlp import Trunk
from longstride.report.rows import read_record

SMALL = Trunk(width=8, depth=1)
RECIPE = ControlRecipe(
    name="tiny",
    tasks=PointMaze(maze="umaze", walks="reach", episodes=4, length=40),
    agent=Agent(
        levels=(
            Level(
                data=Gather(goals=Given(), shift=-1.0),
                critic=PolicyValue(trunk=SMALL, conservative=Conservative(actions=2, calibrated=True)),
                policy=Gaussian(trunk=SMALL),
                extraction=SAC(),
            ),
        ),
        batch=8,
    ),
    phases=(
        Phase(iterations=1, updates=3),
        Phase(iterations=1, episodes=2),
        Phase(iterations=2, episodes=2, utd=0.1, retained=0.5),
    ),
    horizon=Additive(start=5, limit=12, step=3),
    test_horizon=Fixed(limit=10),
    evaluation=ControlEvaluation(episodes=2, every=2),
)


def rows(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if not k.endswith("seconds")} for row in found]


class Killed(Exception):
    """Stands for the end of the process."""


class Kill:
    """Ends the run at its n-th row."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, row: dict[str, Any]) -> None:
        self.left -= 1
        if not self.left:
            raise Killed

    def progress(self, phase: str, done: int, total: int) -> None: ...


def test_a_run_has_the_rows_that_report_and_claims_read(tmp_path: Path) -> None:
    train_control(RECIPE, tmp_path)
    found = rows(tmp_path)
    assert [(r["kind"], r["iteration"]) for r in found] == [
        ("eval", 0), ("train", 1), ("train", 2), ("eval", 2), ("train", 3), ("train", 4), ("eval", 4),
    ]  # fmt: skip
    train = [r for r in found if r["kind"] == "train"]
    assert [r["horizon"] for r in train] == [8, 11, 12, 12]
    assert [r["updates"] > 0 for r in train] == [True, False, True, True]
    assert train[-1]["total_episodes"] == 6 and train[-1]["total_env_steps"] == sum(r["env_steps"] for r in train)
    record = read_record(tmp_path)
    assert not record.notes and [r["iteration"] for r in record.learning] == [0, 2, 4]
    for row in record.learning:
        assert len(row["outcomes"]) == row["summary"]["episodes"] == 10
        assert row["summary"]["success"] == sum(row["outcomes"]) / 10
    assert load_toml(ControlRecipe, tmp_path / "run.toml") == RECIPE


def test_online_success_is_the_mean_of_the_evaluations_since_going_online(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = iter([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 1.0]])

    def evaluate(loop: ControlLoop, *how: Any) -> loops.Tested:
        played = play(loop.tasks.tests(1, 1)[0], loop.learner.actor(0, explore=False), 0)[:2]
        for e, outcome in zip(played, next(outcomes), strict=True):
            e.terminated = bool(outcome)
        return loops.Tested(played, ["a", "b"])

    monkeypatch.setattr(ControlLoop, "evaluate", evaluate)
    phases = (Phase(iterations=1, updates=1), Phase(iterations=2, episodes=1))
    train_control(RECIPE.model_copy(update={"phases": phases, "evaluation": ControlEvaluation(every=1)}), tmp_path)
    measured = [r["measures"]["online_success"] for r in rows(tmp_path) if r["kind"] == "eval"]
    assert measured == [[1, 1], [0, 1], [1, 1], [0.5, 1]]


def test_an_arm_may_put_another_agent_into_a_recipe() -> None:
    agent = algorithms.sac_bc(steps=3, alpha=0.5)
    assert resolve(ControlRecipe, RECIPE, [override("agent", agent)]).agent == agent != RECIPE.agent


def test_eval_tests_a_run_as_its_last_rows_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train_control(RECIPE, tmp_path)
    assert main(["eval", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    last, *_, first = (r for r in reversed(rows(tmp_path)) if r["kind"] == "eval")
    for row, kept in zip(found, (last, first), strict=True):
        assert row == {key: kept[key] for key in ("policy", "strategy", "horizon", "summary", "interval")}
    assert main(["eval", str(tmp_path), "evaluation.episodes=3", "--horizon", "4"]) == 0
    title, head, agent, _ = capsys.readouterr().out.splitlines()
    assert title == "5 held-out tasks, horizon 4, 95 % intervals"
    assert head.split()[3:] == [*(f"umaze-{k}" for k in range(1, 6)), "length", "timeouts", "invalid"]
    assert agent.split()[-3:] == ["4.0", "1.00", "-"]


def test_eval_of_a_control_run_refuses_what_it_cannot_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.toml").write_text(dump_toml(RECIPE), encoding="utf-8")
    for words, message in (
        (["--strategy", "anytime"], "is for language agents"),
        (["--tasks", "9"], "unknown key 'tasks'"),
        ([], "no checkpoint yet"),
    ):
        assert main(["eval", str(tmp_path), *words]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("at", [1, 2, 5, 7])
def test_a_killed_run_goes_on_with_the_numbers_of_one_that_was_not(tmp_path: Path, at: int) -> None:
    train_control(RECIPE, tmp_path / "whole")
    with pytest.raises(Killed):
        train_control(RECIPE, tmp_path / "cut", Kill(at))
    train_control(RECIPE, tmp_path / "cut", resume=True)
    assert rows(tmp_path / "cut") == rows(tmp_path / "whole")
    ends = [
        (tmp_path / run / "checkpoints" / "000004" / "trainer.safetensors").read_bytes() for run in ("cut", "whole")
    ]
    assert ends[0] == ends[1]


def test_a_folder_is_one_runs(tmp_path: Path) -> None:
    train_control(RECIPE, tmp_path)
    with pytest.raises(RunError, match="holds a run already"):
        train_control(RECIPE, tmp_path)
    with pytest.raises(RunError, match="another recipe"):
        train_control(resolve(ControlRecipe, RECIPE, ["agent.batch=16"]), tmp_path, resume=True)

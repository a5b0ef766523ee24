"""A control recipe in a run folder: its phases, rows as report and claims read them, and an exact resume."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control_recipe import RECIPE
from helpers import begin_run, forge, rows_of

from longstride.cli.main import main
from longstride.control import (
    ControlRecipe,
    PointMaze,
    TrainingPhase,
    loop,
)
from longstride.control.envs import play
from longstride.control.evaluation import Tested
from longstride.control.learner import ControlLearner
from longstride.core.config import load_toml
from longstride.core.errors import LongstrideWarning, RunError
from longstride.core.seeds import derive
from longstride.report.rows import read_record

LAST = "checkpoints/000004"


class Killed(Exception):
    """Takes the place of the end of the process."""


class Kill:
    """Stops the run at its n-th row."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, row: dict[str, Any]) -> None:
        self.left -= 1
        if not self.left:
            raise Killed

    def progress(self, phase: str, done: int, total: int) -> None: ...


def test_a_run_has_the_rows_that_report_and_claims_read(tmp_path: Path) -> None:
    RECIPE.train(tmp_path)
    found = rows_of(tmp_path)
    assert [(r["kind"], r["iteration"]) for r in found] == [
        ("data", 0), ("eval", 0), ("train", 1), ("train", 2), ("eval", 2), ("train", 3), ("train", 4), ("eval", 4),
    ]  # fmt: skip
    train = [r for r in found if r["kind"] == "train"]
    walks = RECIPE.tasks.dataset(derive(RECIPE.seed, "dataset"))
    assert found[0]["episodes"] == len(walks) and found[0]["steps"] == sum(e.length for e in walks)
    assert found[0]["return"] == pytest.approx(np.mean([e.reward.sum() for e in walks]))
    assert sum(found[0]["histogram"]["counts"]) == len(walks)
    assert [r["horizon"] for r in train] == [5, 10, 12, 12]
    assert [r["updates"] > 0 for r in train] == [True, False, True, True]
    assert train[-1]["total_episodes"] == 6 and train[-1]["total_env_steps"] == sum(r["env_steps"] for r in train)
    record = read_record(tmp_path)
    assert not record.notes and [r["iteration"] for r in record.learning] == [0, 2, 4]
    for row in record.learning:
        assert [path["task"] for path in row["paths"]] == list(row["summary"]["by_source"])
        assert all(len(path["goal"]) == 2 and 1 < len(path["places"]) <= 13 for path in row["paths"])
        assert len(row["outcomes"]) == row["summary"]["episodes"] == 10
        assert row["summary"]["success"] == sum(row["outcomes"]) / 10
    assert load_toml(ControlRecipe, tmp_path / "run.toml") == RECIPE


def test_warm_up_learns_nothing_and_online_training_drops_offline_data_and_conservatism(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    updates: list[tuple[list[int], bool]] = []
    by_iteration: list[list[tuple[list[int], bool]]] = []
    train_together = loop.train_together

    def spied(learners: Any, count: int, sources: Any, conservative: bool, *rest: Any) -> Any:
        updates.extend([([rows for _, rows in sources[0]], conservative)] * count)
        return train_together(learners, count, sources, conservative, *rest)

    class Split:
        """Cuts the list of updates at each training row."""

        def __call__(self, row: dict[str, Any]) -> None:
            if row["kind"] == "train":
                by_iteration.append(updates.copy())
                updates.clear()

        def progress(self, phase: str, done: int, total: int) -> None: ...

    monkeypatch.setattr(loop, "train_together", spied)
    wsrl = (
        TrainingPhase(iterations=1, updates=2),
        TrainingPhase(iterations=1, episodes=2),
        TrainingPhase(iterations=1, episodes=2, utd=0.1, retained=0.0, conservative=False),
        TrainingPhase(iterations=1, updates=1, retained=0.5),
    )
    RECIPE.replace(phases=wsrl).train(tmp_path, Split())
    train = [r for r in rows_of(tmp_path) if r["kind"] == "train"]
    online = round(0.1 * train[2]["env_steps"])
    drawn = [[([8, 0, 0], True)] * 2, [], [([0, 8, 0], False)] * online, [([4, 4, 0], True)]]
    assert by_iteration == drawn and online > 0
    assert [r["updates"] for r in train] == [2, 0, online, 1]
    assert [r["collected"] for r in train] == [0, 2, 2, 0]


def test_an_offline_run_draws_its_data_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, dataset = [], PointMaze.dataset

    def counted(self: PointMaze, seed: int) -> Any:
        seeds.append(seed)
        return dataset(self, seed)

    monkeypatch.setattr(PointMaze, "dataset", counted)
    RECIPE.replace(phases=(TrainingPhase(iterations=3, updates=2),)).train(tmp_path)
    assert seeds == [derive(RECIPE.seed, "dataset")]


def test_online_success_is_the_mean_of_the_evaluations_since_going_online(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = iter([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 1.0]])

    def evaluate(recipes: list[ControlRecipe], learners: list[ControlLearner], progress: Any) -> list[Tested]:
        played = play(recipes[0].tasks.tests(1, 1)[0], learners[0].actor(0, explore=False), 0)[:2]
        for e, outcome in zip(played, next(outcomes), strict=True):
            e.terminated = bool(outcome)
        return [dict(zip("ab", ([e] for e in played), strict=True))]

    monkeypatch.setattr(loop, "evaluate_beside", evaluate)
    phases = (TrainingPhase(iterations=1, updates=1), TrainingPhase(iterations=2, episodes=1))
    RECIPE.replace(phases=phases, evaluation={"every": 1}).train(tmp_path)
    measured = [r["measures"]["online_success"] for r in rows_of(tmp_path) if r["kind"] == "eval"]
    assert measured == [[1, 1], [0, 1], [1, 1], [0.5, 1]]


def test_eval_of_a_run_repeats_its_first_and_last_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RECIPE.train(tmp_path)
    assert main(["eval", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["rows"]
    last, *_, first = (r for r in reversed(rows_of(tmp_path)) if r["kind"] == "eval")
    for row, kept in zip(found, (last, first), strict=True):
        assert row.pop("measures") == {name: of for name, of in kept["measures"].items() if name != "online_success"}
        assert row == {key: kept[key] for key in ("policy", "strategy", "horizon", "summary", "interval")}
    assert main(["eval", str(tmp_path), "evaluation.episodes=3", "--horizon", "4"]) == 0
    title, head, agent, _ = capsys.readouterr().out.splitlines()
    assert title == "5 held-out tasks, horizon 4, 95 % intervals"
    assert head.split()[3:] == [*(f"umaze-{k}" for k in range(1, 6)), "length", "timeouts", "invalid"]
    assert agent.split()[-3:] == ["4.0", "1.00", "-"]


def test_eval_of_a_control_run_refuses_what_it_cannot_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin_run(tmp_path, RECIPE)
    for words, message in (
        (["--strategy", "anytime"], "is for language agents"),
        (["--tasks", "9"], "unknown key 'tasks'"),
        ([], "no checkpoint yet"),
    ):
        assert main(["eval", str(tmp_path), *words]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("at", [1, 2, 5, 7])
def test_a_resumed_run_has_the_numbers_of_an_uninterrupted_one(tmp_path: Path, at: int) -> None:
    RECIPE.train(tmp_path / "uninterrupted")
    with pytest.raises(Killed):
        RECIPE.train(tmp_path / "resumed", Kill(at))
    RECIPE.train(tmp_path / "resumed", resume=True)
    assert rows_of(tmp_path / "resumed") == rows_of(tmp_path / "uninterrupted")
    ends = [(tmp_path / run / LAST / "trainer.safetensors").read_bytes() for run in ("resumed", "uninterrupted")]
    assert ends[0] == ends[1]


def test_a_run_that_diverges_goes_on_without_acting_and_says_so(tmp_path: Path) -> None:
    recipe = RECIPE.replace(agent={"critic_lr": 1e30, "policy_lr": 1e30})
    with pytest.warns(LongstrideWarning, match=r"learning has diverged; lower agent\.critic_lr"):
        recipe.train(tmp_path)
    rows = rows_of(tmp_path)
    assert rows[-1]["summary"]["success"] == 0
    recipe.train(tmp_path, resume=True)  # it has ended, so nothing is refused
    assert rows_of(tmp_path) == rows
    longer = recipe.replace(phases=(*recipe.phases[:-1], recipe.phases[-1].replace(iterations=9)))
    with pytest.raises(RunError, match="is not finite, and training on it would give nothing else"):
        longer.train(tmp_path, resume=True)


def test_a_checkpoint_without_its_collected_data_is_refused(tmp_path: Path) -> None:
    RECIPE.train(tmp_path)
    forge(tmp_path / LAST, lambda tensors: tensors.pop("collected.last"))
    with pytest.raises(RunError, match=r"000004 is damaged.*collected\.last"):
        RECIPE.train(tmp_path, resume=True)


def test_a_run_folder_belongs_to_one_recipe(tmp_path: Path) -> None:
    RECIPE.train(tmp_path)
    with pytest.raises(RunError, match="holds a run already"):
        RECIPE.train(tmp_path)
    with pytest.raises(RunError, match="another recipe"):
        RECIPE.replace(agent={"batch": 16}).train(tmp_path, resume=True)

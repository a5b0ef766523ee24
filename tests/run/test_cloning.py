"""Cloning before the first iteration says what it does: rows, lines, the report, the dry run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers import rows_of, weights_hash

import longstride as ls
from longstride.cli.main import main
from longstride.core.errors import LongstrideWarning
from longstride.methods import PPO
from longstride.methods.base import Sample
from longstride.papers import load
from longstride.report.live import Live
from longstride.run.folder import read_rows
from longstride.run.imitation import Cloning, Imitation, SolverDemonstrations
from longstride.run.many import train_all
from longstride.run.recipe import Recipe

FEW: dict[str, Any] = {
    "iterations": 1, "episodes_per_iteration": 4, "group_size": 2, "evaluation": {"tasks": 2, "baselines": False},
    "budget": {"turn_tokens": 4}, "test_budget": {"turn_tokens": 4},
}  # fmt: skip
CLONING = Cloning(episodes=24, learner=ls.LearnerConfig(lr=1e-3, batch_samples=2, epochs=2, warmup_steps=4))


class Lines(ls.Silent):
    """What a terminal that shows no live view is told."""

    def __init__(self) -> None:
        self.live, self.lines, self.phases = Live("grpo", 1), [], set()

    def __call__(self, row: dict[str, Any]) -> None:
        self.lines.append(self.live._line(row))

    def progress(self, phase: str, done: int, total: int) -> None:
        self.phases.add(phase)


@pytest.fixture(scope="module")
def cloned(tmp_path_factory: pytest.TempPathFactory) -> tuple[ls.Run, Lines]:
    said = Lines()
    return ls.train("grpo", tmp_path_factory.mktemp("runs") / "cloned", said, cloning=CLONING, **FEW), said


def test_it_has_rows_with_loss_examples_steps_and_its_own_rate(cloned: tuple[ls.Run, Lines]) -> None:
    run, said = cloned
    rows = run.metrics.where(kind="cloning")
    assert run.metrics[: len(rows)] == rows and len(rows) == 20 and said.phases >= {"cloning"}
    steps, examples = rows[-1]["steps"], rows[-1]["examples"]
    assert rows[-1]["step"] == steps and examples <= 48 and steps >= examples / 2
    assert rows.column("step") == sorted(set(rows.column("step"))) and rows[-1]["tokens"] > examples
    assert rows[0]["lr"] < rows[-1]["lr"] == 1e-3 and rows[-1]["loss"] < rows[0]["loss"]
    assert f"step {steps}/{steps}  {examples} examples  lr 0.001  loss" in said.lines[len(rows) - 1]


def test_the_report_has_a_section_on_it(cloned: tuple[ls.Run, Lines]) -> None:
    page = (cloned[0].folder / "report.html").read_text(encoding="utf-8")
    assert ">Cloning</h2>" in page and "learning rate" in page and "<td>0.001</td>" in page


def test_the_dry_run_says_what_it_comes_to(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["cloning.episodes=300", "cloning.learner.epochs=3", "cloning.learner.batch_samples=64"]
    assert main(["train", "grpo", "--dry-run", *settings]) == 0
    assert (
        "# cloning: 300 episodes, 3 passes, up to 64 turns a step: 15 steps or more where all succeed; rate 0.0005 "
        "after 20 steps of warm-up"
    ) in capsys.readouterr().out


def test_an_iteration_that_had_nothing_to_imitate_has_no_loss_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SolverDemonstrations, "samples", lambda *_: [])
    with pytest.warns(LongstrideWarning, match="there was nothing to imitate"):
        run = ls.train("grpo", tmp_path / "run", ls.Silent(), imitation=Imitation(episodes=4), **FEW)
    (row,) = run.metrics.where(kind="train")
    assert "loss" in row and "imitation_loss" not in row


def test_turns_beyond_what_the_policy_sees_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, samples = SolverDemonstrations.samples, []

    def with_a_long_one(*args: Any) -> list[Sample]:
        found = own(*args)
        samples.extend([*found, replace(found[0], prompt_ids=found[0].prompt_ids * 2000)])
        return list(samples)

    monkeypatch.setattr(SolverDemonstrations, "samples", with_a_long_one)
    with pytest.warns(
        LongstrideWarning, match=r"1 of 25 demonstrated turns are longer than the \d+ tokens that"
    ) as said:
        run = ls.train("grpo", tmp_path / "run", ls.Silent(), cloning=CLONING, **FEW)
    longest = len(samples[-1].prompt_ids) + len(samples[-1].sampled_ids)
    assert any(f"the longest has {longest}: they are left out" in str(w.message) for w in said)
    assert run.metrics.where(kind="cloning")[-1]["examples"] == 48


def test_a_run_that_fails_after_it_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> None:
        raise ls.RunError("no engine")

    monkeypatch.setattr("longstride.run.session.language_player", broken)
    with pytest.raises(ls.RunError, match="no engine"):
        ls.train("grpo", tmp_path / "run", ls.Silent(), cloning=CLONING, **FEW)
    assert not (tmp_path / "run").exists()


def test_runs_that_begin_alike_make_their_start_once(tmp_path: Path) -> None:
    recipe = load("grpo")
    assert isinstance(recipe, Recipe)
    recipe = recipe.replace(cloning=CLONING, imitation=Imitation(episodes=4), **FEW)
    changes: dict[str, dict[str, Any]] = {
        "first": {}, "faster": {"name": "faster", "learner": {"lr": 5e-3}, "loss": PPO(clip_high=0.3)},
        "shown_more": {"cloning": {"episodes": 32}}, "other_seed": {"seed": 1},
    }  # fmt: skip
    runs = {tmp_path / name: recipe.replace(**change) for name, change in changes.items()}
    train_all(runs, lambda folder: ls.Silent(), jobs=1)
    took = {run.name: read_rows(run / "metrics.jsonl")[0]["seconds"] for run in runs}
    assert took["faster"] == took["first"] and len(set(took.values())) == 3
    alone = tmp_path / "alone"
    runs[tmp_path / "faster"].train(alone)
    for kind in ("cloning", "eval", "train"):
        assert rows_of(tmp_path / "faster", kind) == rows_of(alone, kind)
    assert weights_hash(tmp_path / "faster") == weights_hash(alone) != weights_hash(tmp_path / "first")
    assert (
        len((tmp_path / "faster" / "episodes" / "before.jsonl").read_text().splitlines()) == FEW["evaluation"]["tasks"]
    )

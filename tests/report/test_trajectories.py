"""Episodes of runs for other people's tools."""

from pathlib import Path
from typing import Any

import pytest
from guides import follow
from helpers import content, shown_of, trajectories_of

import longstride as ls
from longstride.cli.main import main
from longstride.rollout.formats import FORMATS, read_episodes

FEW: dict[str, Any] = {
    "iterations": 2, "episodes_per_iteration": 4, "group_size": 2, "evaluation": {"tasks": 6, "baselines": False},
    "budget": {"turn_tokens": 24}, "test_budget": {"turn_tokens": 24},
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ls.Run:
    return ls.train("grpo", tmp_path_factory.mktemp("runs") / "small", ls.Silent(), **FEW)


@pytest.mark.parametrize("form", FORMATS)
def test_the_episodes_of_a_run_come_back_as_they_were(form: str, run: ls.Run, tmp_path: Path) -> None:
    assert main(["export", str(run.folder), "--trajectories", str(tmp_path / "out"), "--format", form]) == 0
    found = [each.trajectory for each in read_episodes(tmp_path / "out")]
    assert [*map(content, found)] == [*map(content, trajectories_of(run.folder))] and len(found) == 8


def test_evaluation_episodes_are_exported_too(run: ls.Run, tmp_path: Path) -> None:
    assert run.export_trajectories(tmp_path / "out", episodes="after") == 6
    found = [each.trajectory for each in read_episodes(tmp_path / "out")]
    assert [*map(content, found)] == [*map(content, shown_of(run.folder, "after"))]


def test_options_of_the_other_export_are_refused(
    run: ls.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for options, why in (
        (["--out", "x", "--format", "atif"], "--format and --episodes are of --trajectories"),
        (["--trajectories", "x", "--adapter"], "--adapter is of --out"),
    ):
        assert main(["export", str(run.folder), *options]) == 2
        assert why in capsys.readouterr().err


def test_a_run_without_the_episodes_says_so(run: ls.Run, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    ls.evaluate(run, folder=kept)
    with pytest.raises(ls.RunError, match="no training episodes; --episodes before or after"):
        ls.load_run(kept).export_trajectories(tmp_path / "out")
    with pytest.raises(ls.RunError, match="keeps no episodes of an evaluation before"):
        ls.load_run(kept).export_trajectories(tmp_path / "out", episodes="before")
    assert ls.load_run(kept).export_trajectories(tmp_path / "out", episodes="after") == 6


def test_the_guide_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    follow("trajectories.md", tmp_path)
    assert len(list((tmp_path / "atif").glob("*.json"))) == 64
    assert (tmp_path / "dataset" / "README.md").read_text(encoding="utf-8").startswith("---\npretty_name: dataset\n")

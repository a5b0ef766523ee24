"""Episodes of runs for other people's tools."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from guides import follow
from helpers import content, make_task, make_trajectory, make_turn, shown_of, trajectories_of, weights_hash

import longstride as ls
from longstride.cli.main import main
from longstride.rollout.formats import FORMATS, Origin, read_episodes, write_episodes
from longstride.run.imitation import FileSuccesses
from longstride.run.stored import stored_iterations

FEW: dict[str, Any] = {
    "iterations": 2, "episodes_per_iteration": 16, "group_size": 8, "evaluation": {"tasks": 6, "baselines": False},
    "budget": {"turn_tokens": 24}, "test_budget": {"turn_tokens": 24},
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ls.Run:
    return ls.train("grpo", tmp_path_factory.mktemp("runs") / "small", ls.Silent(), **FEW)


@pytest.mark.parametrize("form", FORMATS)
def test_the_episodes_of_a_run_come_back_as_they_were(form: str, run: ls.Run, tmp_path: Path) -> None:
    assert main(["export", str(run.folder), "--trajectories", str(tmp_path / "out"), "--format", form]) == 0
    found = [each.trajectory for each in read_episodes(tmp_path / "out")]
    assert [*map(content, found)] == [*map(content, trajectories_of(run.folder))] and len(found) == 32


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


@pytest.mark.slow
def test_the_guide_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    follow("trajectories.md", tmp_path)
    assert len(list((tmp_path / "atif").glob("*.json"))) == 64
    assert (tmp_path / "dataset" / "README.md").read_text(encoding="utf-8").startswith("---\npretty_name: dataset\n")


class TestReadBack:
    def test_a_run_is_trained_on_exported_episodes_as_on_its_own(self, run: ls.Run, tmp_path: Path) -> None:
        for form in ("messages", "sft"):
            run.export_trajectories(tmp_path / form, form)
            again = ls.train(run.recipe, tmp_path / f"of_{form}", ls.Silent(), stored_run=str(tmp_path / form))
            assert any(again.metrics.where(kind="train").column("trained_tokens"))
            assert weights_hash(again.folder) == weights_hash(run.folder)

    def test_what_cannot_be_trained_on_is_named(self, run: ls.Run, tmp_path: Path) -> None:
        run.export_trajectories(tmp_path / "out", "messages")
        path = tmp_path / "out" / "messages.jsonl"
        lines = path.read_text().splitlines()
        row = json.loads(lines[2])
        for bad, why in (
            ({**row, "completion_ids": [[10**6] * len(row["completion_ids"][0])]}, "line 3: the id 1000000 is none"),
            ({**row, "ordinal": 7}, "line 3: expected the episode of ordinal 2, got 7"),
            ({"prompt": "a", "completion": "b"}, "line 3: it says nothing of rewards"),
            ({**row, "iteration": 2}, "expected the episodes of iteration 3, got those of iteration 1"),
        ):
            path.write_text("\n".join([*lines[:2], json.dumps(bad), *lines[3:]]) + "\n")
            with pytest.raises(ls.RunError, match=why):
                list(stored_iterations(run.recipe.replace(stored_run=str(path)), 0, 1000))  # pyright: ignore
        path.write_text("\n".join(lines[:16]) + "\n")
        with pytest.raises(ls.RunError, match="no iteration 2 of 16 episodes"):
            list(stored_iterations(run.recipe.replace(stored_run=str(path)), 0, 1000))  # pyright: ignore

    def test_demonstrations_are_successes_in_the_words_of_their_file(self, run: ls.Run, tmp_path: Path) -> None:
        recipe, chat = run.recipe, run.policy.chat
        assert isinstance(recipe, ls.Recipe)
        turn = make_turn(observation="", text="Action: answer 5", action="answer 5")
        told = [
            make_trajectory([turn], float(k), ordinal=k, task=make_task(f"t{k}", goal="start 2 ; + 3")) for k in (0, 1)
        ]
        write_episodes(told, tmp_path / "out", "atif", Origin("theirs"))
        with pytest.warns(ls.LongstrideWarning, match="has 1 episodes to imitate, and 9 were asked for"):
            (sample,) = FileSuccesses(path=tmp_path / "out").samples(recipe, chat, 9, random.Random(0))
        with pytest.raises(ls.RunError, match="there is nothing at"):
            FileSuccesses(path=tmp_path / "none.jsonl").samples(recipe, chat, 9, random.Random(0))
        assert sample.sampled_ids == chat.encode("Action: answer 5") + chat.close and sample.episode == 1
        assert sample.prompt_ids == chat.head("start 2 ; + 3") + chat.observation("", first=True)

    def test_episodes_of_others_are_imitated_where_that_is_asked_for(self, run: ls.Run, tmp_path: Path) -> None:
        recipe, chat = run.recipe, run.policy.chat
        assert isinstance(recipe, ls.Recipe)
        tools = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
        (tmp_path / "a.jsonl").write_text(json.dumps({"prompt": "2 + 3", "completion": "5", "tools": tools}) + "\n")
        with pytest.raises(ls.ConfigError, match="none of its 1 episodes is said.*unjudged=true"):
            FileSuccesses(path=tmp_path).samples(recipe, chat, 1, random.Random(0))
        asked = FileSuccesses(path=tmp_path, unjudged=True)
        assert len(asked.samples(recipe, chat, 1, random.Random(0))) == 1
        (tmp_path / "a.jsonl").write_text(json.dumps({"prompt": "2 + 3", "completion": "5"}) + "\n")
        with pytest.raises(ls.ConfigError, match="line 1 names no tools"):
            asked.samples(recipe.replace(actions="tool_calls"), chat, 1, random.Random(0))

    def test_files_are_compared_with_runs_task_by_task(
        self, run: ls.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run.export_trajectories(tmp_path / "out", episodes="after")
        assert main(["compare", str(run.folder), str(tmp_path / "out"), "--json"]) == 0
        (d,) = json.loads(capsys.readouterr().out)["differences"]
        assert d["success"]["tasks"] == 6 and d["success"]["mean"] == 0.0 and d["length"]["mean"] == 0.0
        other = tmp_path / "other"
        write_episodes([make_trajectory(reward=1.0)], other, "messages", Origin("theirs"))
        assert main(["compare", str(run.folder), str(other)]) == 0
        assert "no task in common, so nothing can be paired" in capsys.readouterr().out

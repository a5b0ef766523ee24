"""The commands on runs: with types of a user's own module, and in folders of another format."""

import json
import sys
from pathlib import Path

import pytest
import tomli_w
from helpers import rows_of, trajectories_of
from one_page import make_recipe, save_model

from longstride.cli.main import main
from longstride.core.errors import LongstrideError

MINE = """
from longstride.rewards import Reward, Verdict
from longstride.rollout import Measure
from one_page import OnePageTasks


class MyTasks(OnePageTasks):
    word: str = "red"


class MyReward(Reward):
    share: float = 0.5

    def __call__(self, trajectory, state, seed):
        done = trajectory.answer == "yes"
        return Verdict(self.share * done, done)


class Turns(Measure):
    def __call__(self, trajectory):
        return float(trajectory.length)
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a module of a user, and a recipe whose types stand in it."""
    (tmp_path / "my_types.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_types", raising=False)
    monkeypatch.chdir(tmp_path)
    recipe = make_recipe(save_model(tmp_path / "model"), iterations=1).replace(
        tasks={"type": "my_types:MyTasks", "word": "blue"},
        reward={"type": "my_types:MyReward", "share": 0.25},
        evaluation={"tasks": 4, "baselines": False},
    )
    data = recipe.as_data() | {"evaluation": recipe.evaluation.as_data() | {"measures": [{"type": "my_types:Turns"}]}}
    Path("mine.toml").write_text(tomli_w.dumps(data))
    return tmp_path


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err.strip().splitlines()[-1]


def test_every_command_takes_a_recipe_with_types_of_a_users_module(
    desk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["train", "mine.toml", "--out", "run"]) == 0
    text = Path("run/run.toml").read_text()
    assert 'type = "my_types:MyTasks"' in text and 'word = "blue"' in text and "share = 0.25" in text
    assert {t.reward for t in trajectories_of(desk / "run")} == {0.0, 0.25}
    assert rows_of(desk / "run", "eval")[-1]["measures"]["turns"]
    capsys.readouterr()
    assert main(["train", "--resume", "run", "iterations=2"]) == 0
    assert "points against the warm start" in capsys.readouterr().out
    assert [r["iteration"] for r in rows_of(desk / "run", "train")] == [1, 2]
    assert main(["view", "run"]) == 0
    assert main(["playback", "run", "3"]) == 0
    capsys.readouterr()
    monkeypatch.delitem(sys.modules, "my_types")  # as where Python begins anew
    assert main(["eval", "run", "--json"]) == 0
    agent, start = json.loads(capsys.readouterr().out)["rows"]
    assert agent["measures"] == rows_of(desk / "run", "eval")[-1]["measures"]
    assert start["measures"] == rows_of(desk / "run", "eval")[0]["measures"]


def test_a_run_that_has_the_name_of_a_recipe_is_what_is_evaluated(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "mine.toml", "--out", "tti"]) == 0
    capsys.readouterr()
    assert main(["eval", "tti", "--json"]) == 0
    assert {row["policy"] for row in json.loads(capsys.readouterr().out)["rows"]} == {"agent", "warm_start"}


def test_a_checkpoint_is_evaluated_on_the_tasks_of_its_run(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "mine.toml", "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["eval", "run/checkpoints/000001", "--json"]) == 0
    agent = json.loads(capsys.readouterr().out)["rows"][0]
    assert agent["measures"]["turns"] == rows_of(desk / "run", "eval")[-1]["measures"]["turns"]


def test_runs_whose_tasks_were_another_file_of_a_module_are_not_paired(
    desk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for out, more in (("a", ""), ("b", "# another file\n")):
        (desk / "my_types.py").write_text(MINE + more)
        monkeypatch.delitem(sys.modules, "my_types", raising=False)
        assert main(["train", "mine.toml", "--out", out]) == 0
    capsys.readouterr()
    assert main(["compare", "a", "b", "--html", "mine.toml"]) == 2
    assert "is there already, and is no page" in capsys.readouterr().err and "my_types" in Path("mine.toml").read_text()
    assert main(["compare", "a", "b", "--html", "page.html"]) == main(["compare", "a", "b", "--html", "page.html"]) == 0
    capsys.readouterr()
    assert main(["compare", "a", "b"]) == 0
    said = capsys.readouterr().out
    assert "tasks by another file of the module my_types" in said and "module my_types" in said


def test_a_file_of_tasks_is_found_from_another_folder_and_told_from_another_one(
    desk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [json.dumps({"prompt": f"say {k}", "answer": str(k)}) for k in range(8)]
    words = ["train", "mine.toml", "tasks.type=dataset", "tasks.path=sums.jsonl", "reward.type=task_reward"]
    words += ["evaluation.measures=[]", "evaluation.tasks=2", "context.type=full_history"]
    for out, end in (("a", ""), ("b", ""), ("c", "\n")):
        Path("sums.jsonl").write_text("\n".join(rows) + end)
        assert main([*words, "--out", out]) == 0
    capsys.readouterr()
    for other, paired in (("b", True), ("c", False)):
        assert main(["compare", "a", other]) == 0
        said = capsys.readouterr().out
        assert ("tasks by another file in tasks.path, so nothing can be paired" in said) is not paired
        assert ("file tasks.path" in said) is not paired

    away = desk / "away"
    away.mkdir()
    monkeypatch.chdir(away)
    assert main(["eval", "../c", "--json"]) == 0
    assert "has changed" not in capsys.readouterr().err
    assert main(["eval", "../a", "--json"]) == 0
    assert "sums.jsonl has changed since ../a was made with it" in capsys.readouterr().err
    assert main(["train", "--resume", "../c", "iterations=2"]) == 0
    (desk / "sums.jsonl").unlink()
    capsys.readouterr()
    assert main(["eval", "../c"]) == 2
    assert "there is no file" in last_line(capsys)


def test_an_evaluation_that_is_kept_is_no_run_that_goes_on(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "mine.toml", "--out", "run"]) == 0
    assert main(["eval", "run", "--out", "kept"]) == 0
    before = Path("kept/metrics.jsonl").read_bytes()
    assert main(["eval", "run", "--out", "kept"]) == 2
    assert last_line(capsys).endswith("kept is not empty; choose another place with --out")
    assert main(["train", "--resume", "kept"]) == 2
    assert "keeps an evaluation" in capsys.readouterr().err and Path("kept/metrics.jsonl").read_bytes() == before
    assert main(["eval", "run", "--out", "mine.toml/kept"]) == 2
    assert "mine.toml" in last_line(capsys)


def test_a_run_whose_last_row_was_cut_goes_on(desk: Path) -> None:
    assert main(["train", "mine.toml", "--out", "run"]) == 0
    rows = Path("run/metrics.jsonl")
    rows.write_bytes(rows.read_bytes() + b'{"kind": "train", "itera\n')
    assert main(["train", "--resume", "run", "iterations=2"]) == 0
    assert [row["iteration"] for row in rows_of(Path("run"), "train")] == [1, 2]


def test_a_folder_that_is_no_run_gets_no_report(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("other").mkdir()
    assert main(["view", "other"]) == 2
    assert "other is no run folder" in capsys.readouterr().err and not any(Path("other").iterdir())


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("no_such_module:MyTasks", "cannot be imported as module:Class: No module named 'no_such_module'"),
        ("my_types:NoTasks", "has no attribute 'NoTasks'"),
        ("my_types:MyReward", "my_types:MyReward is no task_source; expected a subclass of TaskSource"),
        ("my_types:", "cannot be imported"),
    ],
)
def test_a_type_that_cannot_be_imported_is_one_message(
    desk: Path, capsys: pytest.CaptureFixture[str], kind: str, part: str
) -> None:
    assert main(["train", "mine.toml", f"tasks.type={kind}", "--dry-run"]) == 2
    line = last_line(capsys)
    assert line.startswith("error: ") and part in line


def make_old(run: Path) -> None:
    """Makes a run folder one that an older version wrote."""
    (run / "format.json").unlink()
    text = (run / "run.toml").read_text()
    (run / "run.toml").write_text(text.replace("episodes_per_iteration", "episodes"))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("old")
    make_recipe(save_model(home / "model"), iterations=1).train(home / "run")
    make_old(home / "run")
    return home / "run"


@pytest.mark.parametrize(
    "argv", [["train", "--resume", "RUN"], ["eval", "RUN"], ["view", "RUN"], ["playback", "RUN", "0"]]
)
def test_a_folder_of_an_older_version_is_refused_by_one_line(
    old: Path, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in old.rglob("*")}
    assert main([str(old) if word == "RUN" else word for word in argv]) == 2
    assert last_line(capsys) == (
        f"error: {old} has run format 1, and this version reads format 3; train it anew, or open it with the version "
        "that wrote it"
    )
    assert {path: path.stat().st_mtime_ns for path in old.rglob("*")} == before


def test_episodes_of_an_older_version_are_not_trained_on(old: Path, tmp_path: Path) -> None:
    recipe = make_recipe(old.parent / "model", iterations=1, stored_run=str(old))
    with pytest.raises(LongstrideError, match="has run format 1"):
        recipe.train(tmp_path / "run")

"""The public Python API: its list, its speed, and what its functions give."""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from guides import DOCS, follow, own_modules

import longstride as ls

SMALL = {
    "iterations": 1, "episodes_per_iteration": 8, "evaluation": {"tasks": 6}, "budget": {"turn_tokens": 24},
    "test_budget": {"turn_tokens": 24},
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder of its own."""
    monkeypatch.chdir(tmp_path)
    with own_modules(tmp_path):
        yield tmp_path


class TestNames:
    def test_every_public_name_is_there_and_documented(self) -> None:
        assert [name for name in ls.__all__ if not inspect.getdoc(getattr(ls, name))] == []
        assert set(ls.__all__) <= set(dir(ls))

    def test_the_list_of_the_docs_is_the_list_of_the_package(self) -> None:
        listed = re.findall(r"^\| `(\w+)` \|", (DOCS / "api.md").read_text(encoding="utf-8"), re.M)
        assert sorted(listed) == ls.__all__

    def test_an_unknown_name_is_an_attribute_error(self) -> None:
        with pytest.raises(AttributeError, match="no attribute 'trian'"):
            ls.trian  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]

    def test_importing_the_package_imports_nothing_heavy(self) -> None:
        heavy = "{'torch', 'transformers', 'pydantic', 'numpy', 'rich'}"
        light = f"import sys, longstride as ls; assert not {heavy} & {{*sys.modules}}"
        code = f"{light}; ls.Task; assert 'torch' not in sys.modules"
        assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ls.Run:
    return ls.train("grpo", tmp_path_factory.mktemp("runs") / "first", ls.Silent(), **SMALL)


class TestRun:
    def test_training_leaves_a_run_with_its_tables(self, run: ls.Run) -> None:
        assert (run.folder / "report.html").is_file()
        assert isinstance(run.recipe, ls.Recipe) and run.recipe.budget.turn_tokens == 24
        assert run.metrics.where(kind="train").column("summary.episodes") == [8]
        assert run.metrics.column("summary.nothing") == [None] * len(run.metrics)
        assert [row["ordinal"] for row in run.trajectories] == list(range(8))
        assert run.trajectory(3).ordinal == 3 and run.trajectory(3).reward == run.trajectories[3]["reward"]
        assert run.policy.max_context > 0

    def test_a_folder_of_a_run_is_not_trained_in_again(self, run: ls.Run) -> None:
        with pytest.raises(ls.RunError, match="holds a run already"):
            ls.train("grpo", run.folder, ls.Silent(), **SMALL)

    def test_a_folder_of_a_run_is_refused_before_an_evaluation_that_is_to_be_kept_there(
        self, run: ls.Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("longstride.run.evaluation.evaluate_policy", lambda *_: pytest.fail("it was played"))
        with pytest.raises(ls.RunError, match="holds a run already"):
            ls.evaluate(run, folder=run.folder)

    def test_a_table_becomes_a_data_frame_where_pandas_is(self, run: ls.Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ls.MissingExtra, match=r"longstride\[pandas\]"):
            run.metrics.to_pandas()
        monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(json_normalize=lambda rows: ("frame", rows)))
        assert run.metrics.to_pandas() == ("frame", list(run.metrics))

    def test_an_evaluation_of_the_run_is_paired_with_one_of_its_start(self, run: ls.Run) -> None:
        ours, start = ls.evaluate(run), ls.evaluate("base-puzzles", run.recipe)
        assert [t.task.id for t in ours.trajectories] == [t.task.id for t in start.trajectories]
        assert ours.summary["episodes"] == 6
        again = ls.evaluate(str(run.folder), strategy=ls.Direct(), evaluation={"tasks": 3})
        assert again.measures["success"] == ours.measures["success"][:3]

    def test_a_model_alone_has_no_tasks_to_be_evaluated_on(self) -> None:
        with pytest.raises(ls.ConfigError, match="a model is evaluated on a recipe's tasks"):
            ls.evaluate("base-puzzles")
        with pytest.raises(ls.ConfigError, match="expected a recipe for language agents"):
            ls.evaluate("base", "cql")

    def test_a_run_goes_on(self, run: ls.Run) -> None:
        further = run.resume(ls.Silent(), iterations=2)
        assert further.metrics.where(kind="train").column("iteration") == [1, 2]
        with pytest.raises(ls.RunError, match="run of another recipe: 'seed' is 0 there"):
            run.resume(ls.Silent(), seed=1)

    def test_a_folder_that_is_no_run_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ls.RunError, match="has no run.toml"):
            ls.load_run(tmp_path)


@pytest.mark.slow
def test_the_guide_to_python_does_what_it_says(home: Path) -> None:
    follow("python_api.md", home)


@pytest.mark.slow
def test_the_guides_to_an_own_environment_and_recipe_do_what_they_say(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(home))
    follow("own_environment.md", home, "iterations=1", "evaluation.tasks=2")
    cloned = ls.load_run(home / "runs" / "cloned").metrics.where(kind="cloning")
    assert 64 < cloned[-1]["examples"] <= 128 and cloned[0]["loss"] > 0
    text = (DOCS / "guides" / "own_environment.md").read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    (home / "right.toml").write_text(f'base = "words.py"\n{text}', encoding="utf-8")
    assert "find the right word" in str(ls.load_recipe("right.toml").as_data())
    follow("own_recipe.md", home)
    assert {path.name for path in (home / "runs").iterdir()} == {
        "words-1",
        "cloned",
        "growing",
        "late",
        "truncated",
        "stairs",
    }
    stairs, truncated = (ls.load_run(home / "runs" / name).metrics for name in ("stairs", "truncated"))
    assert [row["horizon"]["easy"] for row in stairs.where(kind="train")] == [1, 2]
    assert 0 < truncated.where(kind="train")[0]["rho"] < 2


def test_an_own_reward_is_called_for_every_episode_also_at_the_end_of_its_turns(home: Path) -> None:
    for guide in ("own_environment.md", "own_recipe.md"):
        text = (DOCS / "guides" / guide).read_text(encoding="utf-8").split("```python\n# ")[1].split("```")[0]
        (home / text.partition("\n")[0]).write_text(text.partition("\n")[2])
    few = {"iterations": 1, "episodes_per_iteration": 16, "test_budget": {"turns": 2}}
    run = ls.train("growing.py", "run", ls.Silent(), **few)
    rewards = [run.trajectory(k).reward for k in range(16)]
    assert all(turn.reward == 0 for k in range(16) for turn in run.trajectory(k).turns)
    assert {row["stop"] for row in run.trajectories} == {"turns"} and any(rewards)
    assert run.metrics.where(kind="eval", policy="agent").column("summary.reward") != [0.0]

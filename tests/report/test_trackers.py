"""Trackers: which numbers they get, that a run does not depend on them, and that one is asked for by name alone."""

import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import longstride as ls
from longstride.cli.main import main
from longstride.report.trackers import TRACKERS, Tracked, numbers_of

EXPERIMENT = ls.load_recipe("grpo")
TRAIN = {
    "kind": "train", "iteration": 2, "loss": 0.5, "horizon": {"easy": 8, "hard": 24}, "clip_fraction": None,
    "summary": {"success": 0.25, "by_difficulty": {"easy": {"success": 0.5}}, "stops": {"turns": 3}},
}  # fmt: skip
EVAL = {
    "kind": "eval", "iteration": 2, "policy": "agent", "strategy": "check_again", "summary": {"success": 0.75},
    "interval": [0.5, 0.9], "measures": {"success": [1.0, 0.5]},
}  # fmt: skip


class Calls(list[tuple[str, tuple[Any, ...], dict[str, Any]]]):
    """Stands for any object of a tracker's package, and keeps what is called."""

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **keywords: Any) -> Any:
            self.append((name, args, keywords))
            return self

        return call

    def of(self, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(args, keywords) for called, args, keywords in self if called == name]


def package(monkeypatch: pytest.MonkeyPatch, name: str, **contents: Any) -> None:
    """A module that is found where the package `name` would be."""
    module = ModuleType(name)
    module.__spec__ = SimpleNamespace(name=name)  # pyright: ignore[reportAttributeAccessIssue]
    vars(module).update(contents)
    monkeypatch.setitem(sys.modules, name, module)


def track(name: str, folder: Path, rows: tuple[dict[str, Any], ...] = (TRAIN, EVAL)) -> None:
    folder.mkdir(exist_ok=True)
    with Tracked([name], EXPERIMENT, folder, ls.Silent()) as tracked:
        for row in rows:
            tracked(row)


def test_the_numbers_of_a_row_have_names_and_what_is_no_number_is_left_out() -> None:
    assert numbers_of(TRAIN) == {
        "train/loss": 0.5, "train/horizon/easy": 8.0, "train/horizon/hard": 24.0, "train/success": 0.25,
        "train/by_difficulty/easy/success": 0.5, "train/stops/turns": 3.0,
    }  # fmt: skip
    assert numbers_of(EVAL) == {"eval/agent/check_again/success": 0.75}
    assert numbers_of(EVAL | {"strategy": "direct"}) == {"eval/agent/success": 0.75}
    beside = EVAL | {"kind": "beside", "strategy": "direct", "tasks": "far"}
    assert numbers_of(beside) == {"beside/far/agent/success": 0.75}


def test_wandb_gets_recipe_and_numbers_and_a_resumed_run_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = Calls()
    package(monkeypatch, "wandb", init=wandb.init)
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    track("wandb", tmp_path / "run")
    track("wandb", tmp_path / "run")
    first, second = (keywords for _, keywords in wandb.of("init"))
    assert first == second and first["project"] == "mine" and first["resume"] == "allow"
    assert first["config"] == EXPERIMENT.as_data()
    assert wandb.of("log")[0] == (({"iteration": 2} | numbers_of(TRAIN),), {})
    assert len(wandb.of("finish")) == 2


def test_trackio_gets_the_iteration_as_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trackio = Calls()
    package(monkeypatch, "trackio", init=trackio.init)
    track("trackio", tmp_path / "run")
    assert trackio.of("init")[0][1]["name"].startswith("run-")
    assert trackio.of("log") == [((numbers_of(row),), {"step": 2}) for row in (TRAIN, EVAL)]
    assert trackio.of("finish") == [((), {})]


def test_losses_of_cloning_have_the_step_of_cloning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trackio = Calls()
    package(monkeypatch, "trackio", init=trackio.init)
    track("trackio", tmp_path, tuple({"kind": "cloning", "iteration": 0, "step": k, "loss": 0.5} for k in (25, 50)))
    assert [keywords["step"] for _, keywords in trackio.of("log")] == [25, 50]


def test_mlflow_gets_parameters_once_and_numbers_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Client(Calls):
        def get_experiment_by_name(self, name: str) -> None:
            self.append(("asked", (name,), {}))

        def create_run(self, experiment: Any, run_name: str) -> Any:
            self.append(("create_run", (run_name,), {}))
            return SimpleNamespace(info=SimpleNamespace(run_id="r7"))

    client = Client()
    package(monkeypatch, "mlflow", MlflowClient=lambda: client)
    package(monkeypatch, "mlflow.entities", Metric=lambda *parts: parts, Param=lambda *parts: parts)
    track("mlflow", tmp_path / "run")
    track("mlflow", tmp_path / "run", (TRAIN,))
    assert client.of("create_run") == [(("run",), {})]
    (_, params), (numbers, _), *_ = client.of("log_batch")
    assert ("learner.lr", "0.0003") in params["params"]
    assert numbers[0] == "r7" and [(name, value, step) for name, value, _, step in numbers[1]] == [
        (name, value, 2) for name, value in numbers_of(TRAIN).items()
    ]
    assert client.of("set_terminated") == [(("r7",), {})] * 2


def test_tensorboard_writes_event_files_that_it_reads_again(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import (  # pyright: ignore[reportMissingImports]
        EventAccumulator,
    )

    track("tensorboard", tmp_path)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    found = {name: [(e.step, e.value) for e in events.Scalars(name)] for name in events.Tags()["scalars"]}
    assert found == {name: [(2, value)] for row in (TRAIN, EVAL) for name, value in numbers_of(row).items()}


def test_a_tracker_that_breaks_is_named_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **keywords: Any) -> Any:
        raise ConnectionError("no route")

    trackio = Calls()
    package(monkeypatch, "wandb", init=broken)
    package(monkeypatch, "trackio", init=lambda **keywords: SimpleNamespace(log=broken, finish=trackio.finish))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in ("wandb", "trackio"):
            track(name, tmp_path)
    assert [str(w.message) for w in caught] == [
        f"tracker {name}: ConnectionError: no route; the run goes on without it" for name in ("wandb", "trackio")
    ]


def test_an_unknown_or_missing_tracker_is_refused_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    for name, says in (("wandbb", "did you mean 'wandb'"), ("mlflow", "pip install 'longstride[mlflow]'")):
        assert main(["train", "grpo", "--track", name, "--out", str(tmp_path / "run")]) == 2
        assert says in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_a_tracked_run_is_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trackio = Calls()
    package(monkeypatch, "trackio", init=trackio.init)
    small: dict[str, Any] = {"iterations": 1, "episodes_per_iteration": 8, "evaluation": {"tasks": 3}}
    run = ls.train("grpo", tmp_path / "run", ls.Silent(), track="trackio", **small)
    assert [keywords["step"] for _, keywords in trackio.of("log")] == [0, 1, 1]
    assert "track" not in run.recipe.as_data() and set(TRACKERS) == {"tensorboard", "wandb", "trackio", "mlflow"}

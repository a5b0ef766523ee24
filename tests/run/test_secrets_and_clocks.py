"""Secrets of the environment stand nowhere, and no clock on the wall decides anything."""

import os
import time
import warnings
from pathlib import Path

import pytest
from helpers import rows_of

from longstride import papers
from longstride.core.errors import ConfigError, EnvFailure, LongstrideWarning
from longstride.core.secrets import SHORTEST, hidden
from longstride.report import trackers
from longstride.report.html import write_report
from longstride.run.listener import Silent

SECRET = "sk-0123456789abcdef"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    monkeypatch.setenv("SHORT_TOKEN", "x" * (SHORTEST - 1))
    monkeypatch.setenv("MONKEY", "name without a secret")


def test_a_message_has_no_secret_and_no_password_of_an_address():
    said = hidden(f"401 for {SECRET} at https://me:pass@host/x, {'x' * 15}, name without a secret, http://host:80/@a")
    assert said == f"401 for *** at https://***@host/x, {'x' * 15}, name without a secret, http://host:80/@a"
    assert SECRET not in str(EnvFailure(f"the server said {SECRET}"))


def test_a_tracker_that_fails_does_not_say_its_key(tmp_path, monkeypatch):
    def refuse(experiment: object, folder: Path) -> trackers.Tracker:
        raise RuntimeError(f"the key {SECRET} at http://me:{SECRET}@host is not known")

    monkeypatch.setattr(trackers, "TRACKERS", {"json": refuse})
    recipe = papers.load("webgym/exact").replace(iterations=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LongstrideWarning)
        with trackers.Tracked(["json"], recipe, tmp_path / "run", Silent()) as listener:
            recipe.train(tmp_path / "run", listener)
    write_report(tmp_path / "run")
    said = " ".join(str(w.message) for w in caught)
    assert "tracker json: RuntimeError: the key *** at" in said and SECRET not in said
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


def test_a_setting_that_is_a_secret_is_refused_before_anything_is_written(tmp_path):
    recipe = papers.load("webgym/exact").replace(name=f"x --token {SECRET}")
    with pytest.raises(ConfigError, match="what the variable WANDB_API_KEY of the environment holds") as caught:
        recipe.train(tmp_path / "run")
    assert SECRET not in str(caught.value) and not (tmp_path / "run").exists()


def test_a_clock_that_goes_backwards_and_files_of_the_future_change_nothing(tmp_path, monkeypatch):
    recipe = papers.load("webgym/exact").replace(iterations=8, every=2)
    recipe.train(tmp_path / "plain")
    now = [time.time()]

    def back() -> float:
        now[0] -= 3600.0
        return now[0]

    monkeypatch.setattr(time, "time", back)
    recipe.replace(iterations=4).train(tmp_path / "run")
    for path in (tmp_path / "run").rglob("*"):
        os.utime(path, (4e9, 4e9))
    recipe.train(tmp_path / "run", resume=True)
    assert rows_of(tmp_path / "run") == rows_of(tmp_path / "plain")
    seconds = [row["seconds"] for row in rows_of(tmp_path / "run", times=True)]
    assert seconds == sorted(seconds) and seconds[0] >= 0

"""The lock of a folder: one process writes there."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from longstride.core.errors import RunError
from longstride.core.lock import LOCK, held

HOLDER = """
import pathlib, sys
from longstride.core.lock import held
with held(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    input()
"""


@pytest.fixture
def holder(tmp_path: Path):
    """Another process that holds the lock of `tmp_path / "run"`."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "run")]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_second_process_is_told_who_writes_there_and_what_to_do(holder, tmp_path):
    said = rf"run is being written by process {holder.pid} on \S+ since 20.*; wait until that has ended"
    with pytest.raises(RunError, match=said), held(tmp_path / "run"):
        pass
    assert (tmp_path / "run" / LOCK).exists()


def test_a_killed_process_keeps_it_no_longer(holder, tmp_path):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    with held(tmp_path / "run"):
        assert f"process {os.getpid()} on" in (tmp_path / "run" / LOCK).read_text()
    assert not (tmp_path / "run").exists()


def test_the_same_process_cannot_take_it_twice_and_can_take_it_again(tmp_path):
    with held(tmp_path), pytest.raises(RunError, match=f"by process {os.getpid()} "), held(tmp_path):
        pass
    with held(tmp_path):
        (tmp_path / "kept").touch()
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]


def test_a_process_that_was_forked_keeps_nothing_and_ends_nothing(tmp_path):
    go = multiprocessing.get_context("fork").Event()
    with held(tmp_path / "run"):
        child = multiprocessing.get_context("fork").Process(target=go.wait)
        child.start()
        with pytest.raises(RunError, match="is being written"), held(tmp_path / "run"):
            pass
    with held(tmp_path / "run"):
        pass
    go.set()
    child.join()


def test_of_processes_that_torchrun_started_the_first_one_stands_for_all(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    with held(tmp_path / "run"):
        assert not (tmp_path / "run").exists()
    monkeypatch.setenv("RANK", "0")
    with held(tmp_path / "run"):
        assert (tmp_path / "run" / LOCK).exists()


def test_a_file_in_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "run").touch()
    with pytest.raises(RunError, match="run cannot be made a folder"), held(tmp_path / "run"):
        pass

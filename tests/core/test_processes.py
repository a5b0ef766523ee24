"""Programs of others: their limits, what they are kept from, and what is left of them."""

import asyncio
import os
import sys
import time
import warnings
from pathlib import Path

import pytest

from longstride.core import processes
from longstride.core.errors import ConfigError, LongstrideWarning
from longstride.core.processes import Finished, Limits, Sandbox, why_not_confined

needs_bwrap = pytest.mark.skipif(bool(why_not_confined()), reason=why_not_confined() or "bubblewrap is there")
ISOLATIONS = [pytest.param("bwrap", marks=needs_bwrap), "none"]
PYTHON = os.path.realpath(sys.executable)


def ran(folder: Path, *argv: str, isolation: processes.Isolation = "none", **limits: float) -> Finished:
    sandbox = Sandbox({"/task": folder}, Limits().replace(**limits), isolation)
    sandbox.own()
    try:
        return asyncio.run(sandbox.run(argv, "/task"))
    finally:
        sandbox.end()


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_command_reads_and_writes_in_its_folder_and_says_how_it_ended(tmp_path, isolation) -> None:
    (tmp_path / "a").write_text("one\n")
    found = ran(tmp_path, "sh", "-c", "cat a; pwd; echo two > b; echo oh >&2; exit 3", isolation=isolation)
    assert found == Finished(3, "one\n/task\noh\n") and found.trouble == "it ended with status 3"
    assert (tmp_path / "b").read_text() == "two\n"


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_command_sees_no_variables_of_this_process(tmp_path, isolation, monkeypatch) -> None:
    monkeypatch.setenv("A_KEY", "secret")
    found = ran(tmp_path, "env", isolation=isolation)
    assert "secret" not in found.output and "HOME=/task" in found.output


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory is not limited")
def test_memory_and_the_size_of_a_file_are_limited(tmp_path, isolation) -> None:
    found = ran(tmp_path, PYTHON, "-ISc", "bytearray(2 << 30)", isolation=isolation, memory=512)
    assert "MemoryError" in found.output and found.status == 1
    grown = ran(tmp_path, PYTHON, "-ISc", "open('f', 'wb').write(b'x' * (3 << 20))", isolation=isolation, file_size=1)
    assert grown.trouble and (tmp_path / "f").stat().st_size <= 1 << 20


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_who_floods_the_output_is_stopped_and_its_ends_are_shown(tmp_path, isolation) -> None:
    found = ran(tmp_path, "sh", "-c", "echo first; yes flood", isolation=isolation, file_size=1)
    assert found.status != 0 and not found.late
    assert found.output.startswith("first\nflood") and "bytes left out)" in found.output and len(found.output) < 21_000


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_a_late_command_ends_with_all_that_it_started(tmp_path, isolation) -> None:
    sandbox = Sandbox({"/task": tmp_path}, Limits(), isolation)
    sandbox.own()
    argv = ("sh", "-c", "echo begun; setsid sleep 500 & sleep 600")
    found = asyncio.run(sandbox.run(argv, "/task", seconds=1))
    assert found.late and "time was over" in found.trouble
    mark = f"{processes.MARK}={sandbox.environment('/task')[processes.MARK]}".encode()
    ends = time.monotonic() + 60
    while left := processes._marked(mark):  # the system ends them, not at once
        assert time.monotonic() < ends, f"processes {left} are alive"


@needs_bwrap
def test_under_bubblewrap_processes_are_counted_and_a_fork_bomb_ends(tmp_path) -> None:
    script = "for i in $(seq 200); do sleep 5 & done; echo all"
    found = ran(tmp_path, "sh", "-c", script, isolation="bwrap", processes=20)
    assert "all" not in found.output or "annot fork" in found.output


@needs_bwrap
def test_under_bubblewrap_there_is_nothing_but_the_system_and_the_folder(tmp_path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_text("secret")
    argv = ("sh", "-c", f"cat {tmp_path}/secret; touch /usr/longstride; cut -d: -f1 /proc/net/dev | tail -n +3")
    assert ran(tmp_path / "in", "cat", f"{tmp_path}/secret").output == "secret"  # without it, the file is there
    found = ran(tmp_path / "in", *argv, isolation="bwrap")
    assert "No such file or directory" in found.output and not Path("/usr/longstride").exists()
    assert found.output.splitlines()[-1].strip() == "lo" and "eth" not in found.output


def test_where_bubblewrap_is_missing_it_is_said_once_or_refused(tmp_path, monkeypatch) -> None:
    for cached in (processes.why_not_confined, processes._warn_once):
        monkeypatch.setattr(processes, cached.__name__, cached.__wrapped__)
    monkeypatch.setattr(processes.shutil, "which", lambda name: None)
    with pytest.warns(LongstrideWarning, match="bwrap.* is not installed, so programs run with limits alone"):
        assert not Sandbox({"/task": tmp_path}, Limits()).confined
    with pytest.raises(ConfigError, match="is not installed; install it"):
        Sandbox({"/task": tmp_path}, Limits(), "bwrap")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not Sandbox({"/task": tmp_path}, Limits(), "none").confined


def test_folders_that_grow_beyond_their_size_are_named(tmp_path) -> None:
    sandbox = Sandbox({"/task": tmp_path}, Limits(folder_size=1), "none")
    assert sandbox.overflow() == ""
    (tmp_path / "f").write_bytes(bytes(2 << 20))
    assert sandbox.overflow() == "the files have more than 1 MiB"


def test_folders_in_one_another_are_counted_and_removed_where_python_cannot(tmp_path, monkeypatch) -> None:
    box = tmp_path / "box"
    deep = box / "/".join("a" * 100)
    deep.mkdir(parents=True)
    sandbox = Sandbox({"/task": box}, Limits(), "none")
    assert sandbox.overflow() == ""
    (deep / "b").mkdir()
    assert sandbox.overflow() == "there are more than 100 folders in one another"

    def too_deep(path: Path) -> None:
        raise RecursionError  # as of 1,000 of them

    monkeypatch.setattr(processes.shutil, "rmtree", too_deep)
    deep.chmod(0)
    processes.remove(box)
    assert not box.exists()


def test_of_a_link_the_link_is_removed_and_of_a_file_the_file(tmp_path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    (tmp_path / "file").touch()
    for name in ("link", "file", "nothing"):
        processes.remove(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]

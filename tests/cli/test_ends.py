"""Commands that cannot go on: what is told to end, paths that nothing can be made at, files that are none."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import begin_run

from longstride import papers
from longstride.cli import listing
from longstride.cli.main import main
from longstride.cli.train import _next_folder
from longstride.core.component import build
from longstride.core.errors import ConfigError, ModelError, RunError
from longstride.core.files import new_folder
from longstride.engines.config import HTTP
from longstride.models.load import SHIPPED, load_policy
from longstride.report.html import write_report
from longstride.run.experiment import load_run_experiment


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_run_that_is_told_to_end_says_so_and_how_it_goes_on(desk):
    """As by a supervisor, or with its terminal. It can be resumed: tests/run/test_resume.py kills it anywhere."""
    command = [sys.executable, "-m", "longstride", "train", "webgym/exact", "iterations=1000000", "--out", "run"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as run:
        assert run.stdout is not None
        assert any("eval" in line for line in run.stdout), "it ends only when it is told to"
        run.send_signal(signal.SIGTERM)
        said = run.communicate(timeout=180)[1]
    assert run.returncode == 143
    assert said.startswith("ended by SIGTERM\n") and "train --resume run" in said and "Traceback" not in said
    assert not (desk / "run" / "lock").exists() and (desk / "run" / "metrics.jsonl").exists()


@pytest.mark.slow
def test_runs_in_processes_of_their_own_end_with_their_command(desk):
    """A supervisor tells the command alone; a terminal tells all of them."""
    command = [sys.executable, "-m", "longstride", "sweep", "webgym/exact", "out", "iterations=1000000"]
    command += ["--grid", "method.rate=0.1,0.2", "--jobs", "2"]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as sweep:
        while len(list((desk / "out").glob("*/metrics.jsonl"))) < 2 and sweep.poll() is None:
            time.sleep(0.1)
        sweep.send_signal(signal.SIGTERM)
        said = sweep.communicate(timeout=180)[1]
    assert sweep.returncode == 143
    assert "the same command goes on" in said and "Traceback" not in said


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_command_that_is_told_to_end_ends_once_with_the_code_of_the_signal(name, code, monkeypatch, capsys):
    def interrupted(args: object) -> int:
        try:
            os.kill(os.getpid(), getattr(signal, name))
            raise AssertionError("it goes on")
        finally:
            os.kill(os.getpid(), signal.SIGHUP)  # a supervisor that sends both does not disturb what is put in order

    monkeypatch.setattr(listing, "run", interrupted)
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` ignores it
    try:
        assert main(["list"]) == code and capsys.readouterr().err == f"ended by {name}\n"
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_that_is_ignored_stays_so_and_handlers_do_not_outlive_the_command():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert main(["list"]) == 0
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("out", ["/proc/x", "/proc/x/y"])
@pytest.mark.parametrize("command", [["train", "webgym/exact"], ["make-base"]])
def test_where_nothing_can_be_made_is_said(command, out, capsys):
    assert main([*command, "--out", out]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: /proc/x cannot be used: nothing can be made there") and "resume" not in said


def test_a_policy_cannot_be_exported_where_nothing_can_be_made():
    with pytest.raises(PermissionError, match="nothing can be made there"), new_folder(Path("/proc/y")):
        pass


@pytest.mark.parametrize("page", ["/proc/page.html", "/proc/x/page.html"])
def test_a_page_that_cannot_be_written_is_said(page, desk, capsys):
    for name in "ab":
        begin_run(desk / name, "name = 'x'\n")
    assert main(["compare", "a", "b", "--html", page]) == 2
    assert "cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["a\0b", "a\ud800"])
@pytest.mark.parametrize("command", [["train"], ["train", "tti", "--dry-run"], ["train", "tti", "--out"], ["view"]])
def test_a_word_that_no_system_takes_is_refused(word, command, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([*command, word])
    assert "has a NUL byte or half a character" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["a\0", "\ud800", "\udcff"])
def test_a_setting_that_no_file_can_hold_is_refused_with_its_place(text):
    with pytest.raises(ConfigError, match="chat.template: expected a text without NUL or half a character|chat: "):
        papers.load("tti").replace(chat={"template": text})
    with pytest.raises(ConfigError, match="name: expected a text without NUL"):
        papers.load("tti").replace(name=text)
    with pytest.raises(ConfigError, match="model: expected a text without NUL"):
        build(HTTP, {"url": "http://127.0.0.1:1/v1", "model": text})


def test_a_pipe_among_the_weights_is_refused_and_not_waited_for(desk):
    shutil_copy(SHIPPED["base"], desk / "model")
    (desk / "model" / "model.safetensors").unlink()
    os.mkfifo(desk / "model" / "model.safetensors")
    with pytest.raises(ModelError, match=r"model\.safetensors is no file"):
        load_policy("./model")


def shutil_copy(source: Path, target: Path) -> None:
    target.mkdir()
    for path in source.iterdir():
        (target / path.name).write_bytes(path.read_bytes())


@pytest.mark.parametrize(
    "name",
    ["format.json", "metrics.jsonl", "trajectories.jsonl", "episodes/after.jsonl", "checkpoints/000001/trainer.json"],
)
def test_a_pipe_in_a_run_folder_is_refused_and_not_waited_for(name, desk):
    begin_run(desk / "run", papers.load("tti"))
    path = desk / "run" / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    for use in (load_run_experiment, write_report):
        began = time.monotonic()
        with pytest.raises(RunError, match="is no file, and reading it would wait for ever"):
            use(desk / "run")
        assert time.monotonic() - began < 30


@pytest.mark.parametrize("setting", ["model=./nowhere", "model=no/such/folder/there", "device=cuda:99"])
def test_what_cannot_run_leaves_no_folder(setting, desk, capsys):
    for _ in range(2):
        assert main(["train", "tti", setting]) == 2
    assert not list((desk / "runs").glob("*"))


def test_commands_that_start_together_have_a_folder_each():
    assert [str(_next_folder("tti")) for _ in range(3)] == ["runs/tti-1", "runs/tti-2", "runs/tti-3"]

"""Benchmarks: ratios and verdicts on made-up numbers, the command with a made-up benchmark, and the browser's parts."""

import dataclasses
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from longstride.bench import processes
from longstride.bench.base import Benchmark, Quantity, in_turn, judged, run_benchmark, table
from longstride.cli import bench as command
from longstride.cli.main import main
from longstride.core.errors import ConfigError, RunError


def call(*argv):
    parser = ArgumentParser()
    command.add(parser.add_subparsers())
    args = parser.parse_args(["bench", *argv])
    return args.run(args)


class TestRows:
    def test_a_ratio_is_above_one_where_we_are_better(self):
        faster = judged(Quantity("step", "ms", [1.0, 1.1, 0.9], [10.0, 11.0, 9.0], "peer 1"))
        more = judged(Quantity("rate", "1/s", [10.0, 11.0, 9.0], [1.0, 1.1, 0.9], "peer 1", higher_is_better=True))
        assert faster["value"] == pytest.approx(10) == more["value"]
        assert (faster["ours"], faster["peer"], faster["against"]) == (1.0, 10.0, "peer 1")

    def test_what_slows_a_round_down_slows_both_and_cancels(self):
        slow = np.array([1.0, 3.0, 7.0, 2.0])
        row = judged(Quantity("step", "ms", slow, 20 * slow, goal=10.0))
        assert (row["lo"], row["hi"]) == pytest.approx((20, 20)) and row["verdict"] == "met"

    def test_each_task_is_compared_with_itself(self):
        tasks = np.array([1.0, 100.0])
        row = judged(Quantity("step", "ms", [tasks, tasks], [5 * tasks, 5 * tasks]))
        assert (row["value"], row["lo"], row["hi"]) == pytest.approx((5, 5, 5))

    @pytest.mark.parametrize(("goal", "verdict"), [(1.5, "met"), (2.0, "undecided"), (9.0, "missed"), (None, "")])
    def test_a_goal_is_met_only_where_the_whole_interval_says_so(self, goal, verdict):
        row = judged(Quantity("step", "ms", [1.0, 1.0, 1.0, 1.0], [1.9, 2.1, 2.0, 2.02], goal=goal))
        assert row["verdict"] == verdict

    @pytest.mark.parametrize(
        ("values", "higher", "verdict"),
        [
            ([60.0, 61.0], False, "met"),
            ([90.0, 91.0], False, "missed"),
            ([90.0, 91.0], True, "met"),
            ([60.0, 61.0], True, "missed"),
            ([50.0, 90.0], False, "undecided"),
            ([60.0], False, "undecided"),
        ],
    )
    def test_without_a_peer_the_value_itself_has_a_goal(self, values, higher, verdict):
        row = judged(Quantity("memory", "MB", values, higher_is_better=higher, goal=70.0))
        assert row["verdict"] == verdict and "peer" not in row

    def test_sides_take_turns_and_each_begins_a_round(self):
        calls = []

        def side(name):
            return lambda k: calls.append((k, name)) or {"x": [k, k + 1]}

        shown = []
        seen = in_turn({n: side(n) for n in "abc"}, 3, shown.append)
        assert "".join(n for _, n in calls) == "abcbcacab"
        assert seen["b"]["x"].tolist() == [[0, 1], [1, 2], [2, 3]]
        assert shown[0] == "round 1 of 3: a"

    @pytest.mark.parametrize("ends_in", [0, 2])
    def test_an_interrupt_keeps_whole_rounds_where_fewer_will_do(self, ends_in):
        def b(k):
            if k == ends_in:
                raise KeyboardInterrupt
            return {"x": k}

        sides = {"a": lambda k: {"x": -k}, "b": b}
        if ends_in:
            seen = in_turn(sides, 9, print, or_fewer=True)
            assert seen["a"]["x"].tolist() == [0, -1] and seen["b"]["x"].tolist() == [0, 1]
        for or_fewer in (False,) if ends_in else (False, True):
            with pytest.raises(KeyboardInterrupt):
                in_turn(sides, 9, print, or_fewer=or_fewer)


def made_up(rows):
    return Benchmark("made-up", "What?", ("the same",), "nothing", lambda *_: (rows, {"peer": "1"}), "  make it")


class TestKept:
    def test_both_files_hold_every_row(self, tmp_path):
        rows = [
            Quantity("step", "ms", [1.0, 2.0], [100.0, 300.0], "peer 1", goal=2.0),
            Quantity("memory", "MB", [4.0, 5.0]),
        ]
        result = run_benchmark(made_up(rows), tmp_path / "out", "python", 2, print)
        assert json.loads((tmp_path / "out" / "made-up.json").read_text()) == result
        assert result["rows"][0]["samples"] == {"ours": [1.0, 2.0], "peer": [100.0, 300.0]}
        assert (
            result["versions"]["peer"] == "1"
            and result["command"] == "longstride bench made-up --rounds 2 --peer PYTHON"
        )
        short = dataclasses.replace(made_up(rows), name="made-up-short")
        said = run_benchmark(short, tmp_path, None, 2, print)["command"]
        assert said == "longstride bench made-up --short --rounds 2"
        text = (tmp_path / "out" / "made-up.md").read_text()
        assert table(result) in text
        line = next(x for x in text.splitlines() if x.startswith("| step (ms)"))
        assert "| 200 (peer 1) | 122 x |" in line and line.endswith(f">= 2 | {result['rows'][0]['verdict']} |")

    def test_the_command_prints_the_table_or_one_object(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        made = SimpleNamespace(BENCHMARK=made_up([Quantity("memory", "MB", [4.0, 5.0])]))
        monkeypatch.setitem(sys.modules, "longstride.bench.browser", made)
        assert call("browser", "--rounds", "2") == 0
        out, err = capsys.readouterr()
        assert "| memory (MB) | 4.5 |" in out and "kept in benchmarks/made-up.md" in out and "make it" in err
        assert call("browser", "--json", "--peer", "python") == 0
        out, err = capsys.readouterr()
        assert json.loads(out)["rows"][0]["name"] == "memory" and "make it" not in err

    def test_every_benchmark_has_a_name_of_the_command(self):
        files = Path(command.__file__).parents[1].glob("bench/*.py")
        assert sorted(f.stem for f in files if "\nBENCHMARK = " in f.read_text()) == list(command.NAMES)

    def test_where_benchmarks_are_not_installed_the_command_says_where_they_are(self, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "longstride.bench", None)
        assert main(["bench", "step"]) == 2
        assert "error: benchmarks come with the repository" in capsys.readouterr().err

    def test_one_round_is_refused(self):
        with pytest.raises(ConfigError, match="at least 2.*got 1"):
            call("browser", "--rounds", "1")


class TestProcesses:
    def test_a_tree_counts_its_children(self):
        code = "import sys; x = b'x' * 60_000_000; sum(range(20_000_000)); print(flush=True); sys.stdin.read()"
        before = processes.processor_seconds(os.getpid())
        with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None and child.stdout.readline()
            assert child.pid in processes.tree(os.getpid())
            assert 60 < processes.memory(child.pid) < 120
            used = processes.processor_seconds(os.getpid()) - before
            assert used > 0.1
        assert processes.processor_seconds(os.getpid()) - before >= used  # an ended child still counts

    def test_a_process_that_is_gone_is_nothing(self):
        child = subprocess.Popen([sys.executable, "-c", ""])
        child.wait()
        assert (processes.memory(child.pid), processes.processor_seconds(child.pid)) == (0, 0)


needs_browser = pytest.mark.skipif(
    importlib.util.find_spec("playwright") is None
    or importlib.util.find_spec("miniwob") is None
    or not (shutil.which("chromium") or os.environ.get("LONGSTRIDE_CHROMIUM")),
    reason="needs pip install 'longstride[browser,miniwob]' and Chromium",
)


@pytest.fixture
def browser(monkeypatch):
    from longstride.bench import browser

    monkeypatch.setattr(browser, "PLANS", {n: browser.PLANS[n] for n in ("click-test-2", "enter-text")})
    monkeypatch.setattr(browser, "EPISODES", 1)
    monkeypatch.setattr(browser, "WINDOW", 0.2)
    monkeypatch.setattr(browser, "SETTLE", 0.1)
    monkeypatch.setattr(browser, "CONTEXTS", 1)
    monkeypatch.setattr(browser, "TABS", 1)
    monkeypatch.setattr(browser, "AT_ONCE", (1, 2, 3))
    return browser


@needs_browser
class TestBrowser:
    @pytest.mark.slow
    def test_ours_alone_has_every_row_that_needs_no_peer(self, browser):
        rows, versions = browser.measure(None, 1, lambda _: None)
        assert all(np.asarray(r.ours).shape in ((1,), (2,), (1, 2)) and np.isfinite(r.ours).all() for r in rows)
        # memory is a difference of two readings, and the window is too short for a reading of the processor's use
        assert all((np.asarray(r.ours) > 0).all() for r in rows if r.unit in ("ms", "steps/s"))
        assert [r.name for r in rows if r.unit == "ms"] == ["step", "reset", "reset, the first of a page"]
        assert sum(r.unit == "MB" for r in rows) == 3 and set(versions) == {"playwright"}

    def test_an_action_without_effect_ends_the_benchmark(self, browser, monkeypatch):
        monkeypatch.setitem(browser.PLANS, "click-test-2", [("hover", "button", 0, "")])
        monkeypatch.setattr(browser, "_memory_rows", lambda *_: [])
        with pytest.raises(RunError, match="'hover .1. ' took no effect"):
            browser.measure(None, 2, lambda _: None)

    def test_a_peer_that_cannot_be_run_is_an_error_that_says_how_to_make_it(self, browser):
        with pytest.raises(ConfigError, match="no-such-python cannot be run.*\n.*-m venv"):
            browser._ask_peer("no-such-python", "http://127.0.0.1:1", 0.0, 0, {})

    def test_a_peers_numbers_come_in_the_order_of_the_plans(self, browser, tmp_path):
        found = {q: {"enter-text": 2.0, "click-test-2": 1.0} for q in ("step", "reset")}
        peer = tmp_path / "peer"
        peer.write_text(f"#!/bin/sh\necho a warning\necho '{json.dumps(found | {'versions': {'playwright': '1'}})}'\n")
        peer.chmod(0o755)
        versions = {"playwright": "2"}
        assert browser._ask_peer(str(peer), "", 0.0, 0, versions) == {"step": [1.0, 2.0], "reset": [1.0, 2.0]}
        assert versions == {"playwright": "2", "playwright of BrowserGym": "1"}

    def test_a_peer_that_fails_ends_with_its_last_words(self, browser, tmp_path):
        peer = tmp_path / "peer"
        peer.write_text("#!/bin/sh\necho No module named browsergym >&2\nexit 1\n")
        peer.chmod(0o755)
        with pytest.raises(RunError, match="could not be measured.*No module named browsergym"):
            browser._ask_peer(str(peer), "", 0.0, 0, {})

"""The live view: on a terminal and in a pipe, never in training's way."""

import io
import re
from typing import Any

import pytest
from report_rows import ROWS, evaluation
from rich.console import Console

from longstride.report.html import verdict
from longstride.report.live import Live
from longstride.report.rows import Record


def pipe() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=60)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_live_without_a_terminal_prints_one_ascii_line_a_row() -> None:
    console = pipe()
    with Live("tti [red]\nx", 15, console) as live:
        for row in [*ROWS, {}, {"kind": "train", "horizon": None, "summary": 3}]:
            live.progress("rollout", 3, 10)
            live(row)
    lines = written(console).splitlines()
    assert len(lines) == len(ROWS) + 2
    assert written(console).isascii()
    assert all(line.startswith("tti [red] x ") for line in lines)
    assert "eval  agent direct  horizon 12  success 0.58 [0.53, 0.63]" in lines[-4] and "+31 points" in lines[-4]
    assert "check_again_2" in lines[-3] and "points" not in lines[-3]
    assert "train  horizon 4/8/12  success 0.45" in lines[16] and "1.9k tok/s" in lines[16]


def test_live_estimates_the_time_left_from_the_newest_iterations() -> None:
    console = pipe()
    with Live("tti", 10, console) as live:
        for iteration, seconds in ((1, 100), (2, 101), (3, 102), (4, 112), (5, 122), (6, 132)):
            live({"kind": "train", "iteration": iteration, "seconds": seconds})
    assert written(console).splitlines()[-1].endswith("2:12 spent  0:40 left")


@pytest.mark.parametrize("rows", [[], [{}], [{"kind": "train"}, {"kind": "eval"}], ROWS])
def test_live_draws_whatever_the_rows_hold(rows: list[dict[str, Any]]) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=90, height=30, color_system=None)
    with Live("tti", 15, console) as live:
        live.progress("eval", 0, 0)
        for row in rows:
            live(row)
        live.progress("rollout", 40, 100)
    text = written(console)
    assert "rollout" in text and "40/100" in text
    if rows is ROWS:
        assert all(
            part in text for part in ("iteration 15/15", "+31 points", "easy 0.58", "[0.53, 0.63]", "1.9k tokens/s")
        )


def test_live_draws_on_its_own_thread_however_often_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    view = Live._view
    monkeypatch.setattr(Live, "_view", lambda self: drawn.append(1) or view(self))
    with Live("tti", 15, Console(file=io.StringIO(), force_terminal=True)) as live:
        for i in range(20_000):
            live.progress("rollout", i, 20_000)
    assert len(drawn) < 20


@pytest.mark.parametrize("terminal", [False, True])
def test_what_an_exact_experiment_computed_is_shown_in_place_of_what_episodes_came_to(terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=90, height=30, color_system=None)
    row = {"kind": "eval", "iteration": 20, "policy": "agent", "measures": {"regret": [0.25], "none": [], "gap": [3]}}
    with Live("bandit", 40, console) as live:
        live(row)
    text = written(console)
    assert re.search(r"regret 0\.25 +gap 3", text) and "20/40" in text
    assert not any(word in text for word in ("horizon", "length", "training", "time-outs", "none"))


def test_the_first_strategy_of_the_run_makes_its_learning_curve() -> None:
    rows = [evaluation(i, p, y, s) for i, p in ((0, "warm_start"), (5, "agent"))
            for y, s in ((0.4 + i / 50, "check_again_2"), (0.1, "direct"))]  # fmt: skip
    assert verdict(Record("x", rows=rows)).startswith("held-out success 0.40 -> 0.50 (+10 points)")
    console = pipe()
    with Live("x", 5, console) as live:
        for row in rows:
            live(row)
    assert "+10 points against the warm start" in written(console).splitlines()[2]


@pytest.mark.parametrize("terminal", [False, True])
def test_where_nothing_is_ever_a_success_the_return_is_told(terminal: bool) -> None:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=90, height=30, color_system=None)
    rows = [
        evaluation(i, p, 0.0, "direct") | {"measures": {"return": [r, r - 2]}}
        for i, p, r in ((0, "warm_start", -99), (5, "agent", -49))
    ]
    with Live("x", 5, console) as live:
        for row in rows:
            live(row)
    text = written(console)
    assert re.search(r"return +-50 ", text) and "+50 against the warm start" in text
    assert "success 0" not in text and "points" not in text and "0.00  " not in text.split("length")[0]


def test_what_is_resumed_is_set_beside_what_came_before() -> None:
    console = pipe()
    with Live("x", 5, console) as live:
        live.goes_on([evaluation(0, "warm_start", 0.4, "direct"), evaluation(1, "agent", 0.45, "direct")])
        live(evaluation(5, "agent", 0.5, "direct"))
    (line,) = written(console).splitlines()
    assert "+10 points against the warm start" in line

"""The report and the live view: whole from any run folder, inert whatever texts are in it, never in training's way."""

import base64
import errno
import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from helpers import begin_run, make_task, make_trajectory, make_turn
from report_rows import ROWS, evaluation, summary, training

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import RunError
from longstride.core.sealed import place_of, seal, seal_lines
from longstride.core.trajectory import Trajectory
from longstride.report import episodes as report_episodes
from longstride.report.compare import compare
from longstride.report.episodes import read_episodes
from longstride.report.figures import MOST_POINTS, figures
from longstride.report.html import verdict, write_report
from longstride.report.rows import Record, horizon_text, interval, number, points, read_record, short
from longstride.rollout.summary import HORIZONS
from longstride.stats import mean_interval

HOSTILE = "</script><img src=x onerror=alert(1)><!--<script </script x & \u2028 \ud800"
PAGE = "home [1] textbox search [2]\n# lamps\namber lantern [3]"


def episode(ordinal: int, success: bool, page: str = PAGE, goal: str = "find the color", steps: int = 2) -> Trajectory:
    task = make_task(f"t{ordinal}", source="web/shop", goal=goal, difficulty=("easy", "hard")[ordinal % 2])
    text = "Thought: amber Action: click amber lantern [3]"
    turn = make_turn([3], [1, 2], observation=page, text=text, action="click [3]")
    evidence = {"evaluator": "answer", "expected": "red", "got": "red" if success else "grey", "matched": success}
    return make_trajectory(
        [turn] * steps, float(success), task=task, ordinal=ordinal, budget=Budget(turns=12), stop=StopReason.ANSWERED,
        answer="red", evidence=evidence,
    )  # fmt: skip


def sealed(k: int, row: Any) -> str:
    """A line of metrics; what is no row stands as it is."""
    text = json.dumps(row)
    return seal(text, place_of(k)) if row and isinstance(row, dict) else text


def write_run(run: Path, rows: list[Any], before: list[Trajectory], after: list[Trajectory], name: str = "tti") -> Path:
    (run / "episodes").mkdir(parents=True)
    begin_run(run, f"name = {json.dumps(name)}\niterations = 15\n")
    (run / "metrics.jsonl").write_text("".join(sealed(k, r) + "\n" for k, r in enumerate(rows)))
    for side, trajectories in (("before", before), ("after", after)):
        (run / "episodes" / f"{side}.jsonl").write_text(seal_lines([t.to_json() for t in trajectories]))
    return run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(
        tmp_path / "run", ROWS, [episode(i, i == 0) for i in range(4)], [episode(i, True) for i in range(4)]
    )


class Page(HTMLParser):
    """All start tags with their attributes, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and self.cdata_elem:
            self.scripts[-1] += data


def data_of(report: Path) -> dict[str, Any]:
    return json.loads(Page(report.read_text(encoding="utf-8")).scripts[0])


def test_report_tells_the_run_in_one_sentence_of_numbers(run: Path) -> None:
    sentence = "held-out success 0.27 -> 0.58 (+31 points) in 15 iterations, 4.2 min, 62k environment steps"
    assert verdict(read_record(run)) == sentence
    assert sentence.replace("->", "&rarr;") in write_report(run).read_text()


def test_a_task_that_is_drawn_twice_is_shown_twice(tmp_path: Path) -> None:
    twice = [replace(episode(0, success), group=k) for k, success in enumerate((True, False))]
    shown = data_of(write_report(write_run(tmp_path / "run", ROWS, twice, twice)))["episodes"]
    assert shown["of"] == 2 and [task["outcome"] for task in shown["tasks"]] == ["solved", "unsolved"]


def test_support_and_other_tasks_are_shown_where_they_say_more(run: Path) -> None:
    assert "supported" not in write_report(run).read_text()
    rows = [evaluation(0, "warm_start", 0.27), evaluation(15, "agent", 0.58)]
    for row, supported in zip(rows, (0.19, 0.52), strict=True):
        row["summary"] |= {"supported": supported, "idle": 0.16}
    beside = {**evaluation(15, "agent", 0.44), "kind": "beside", "tasks": "new_templates"}
    (run / "metrics.jsonl").write_text("".join(sealed(k, r) + "\n" for k, r in enumerate([*rows, beside])))
    page, record = write_report(run).read_text(), read_record(run)
    assert "<dt>supported</dt><dd><small>0.19 &rarr;</small> 0.52</dd>" in page and "<dt>idle turns</dt>" in page
    assert "new templates" in page and "0.440" in page
    success = next(f for f in figures(record) if f["title"] == "Success")
    assert "supported" in [s["name"] for s in success["series"]]
    assert record.ends[1] == rows[1]


def test_a_start_that_was_not_evaluated_is_said_and_nothing_takes_its_place(run: Path) -> None:
    rows = [*(r for r in ROWS if r["kind"] == "train"), evaluation(10, "agent", 0.4), evaluation(15, "agent", 0.58)]
    (run / "metrics.jsonl").write_text("".join(sealed(k, r) + "\n" for k, r in enumerate(rows)))
    first, last = read_record(run).ends
    assert first is None and last == rows[-1]
    said, page = verdict(read_record(run)), write_report(run).read_text()
    assert said.startswith("held-out success 0.58 after ") and said.endswith("; its start was not evaluated")
    assert "<dt>success</dt><dd>0.58</dd>" in page
    shutil.copytree(run, run.with_name("other"))
    assert [side["before"] for side in compare([run, run.with_name("other")])["runs"]] == [None, None]


def test_success_by_test_horizon_is_read_off_one_evaluation(run: Path) -> None:
    before, after = evaluation(0, "warm_start", 0.25), evaluation(15, "agent", 0.75)
    before["measures"] = {"success": [1.0, 0.0, 0.0, 0.0], "length": [3.0, 1.0, 12.0, 12.0]}
    after["measures"] = {"success": [1.0, 1.0, 1.0, None], "length": [3.0, 12.0, 5.0, None]}

    def shown() -> dict[str, list[float]]:
        (run / "metrics.jsonl").write_text("".join(sealed(k, r) + "\n" for k, r in enumerate([before, after])))
        made = [f for f in figures(read_record(run)) if f["title"] == "Success by test horizon"]
        return {s["name"]: [p["y"] for p in s["points"]] for f in made for s in f["series"]}

    assert shown() == {
        "before training": [0.0] * 2 + [0.25] * 10,
        "after": pytest.approx([0.0] * 2 + [1 / 3] * 2 + [2 / 3] * 7 + [1.0]),
    }
    after["measures"]["success"][0] = 0.5  # the mean of two samples says nothing of one episode
    assert list(shown()) == ["before training"]


def test_report_draws_every_figure_that_the_rows_allow(run: Path) -> None:
    made = {f["title"]: f for f in data_of(write_report(run))["figures"]}
    assert list(made) == [
        "Success", "Horizon and length", "Success by difficulty", "Time-outs and invalid actions", "Actions",
        "Why episodes stopped", "Checking again before answering", "Loss",
    ]  # fmt: skip
    learning = made["Success"]
    assert learning["axes"] == ["environment steps", "episodes", "minutes", "iteration"]
    assert learning["rules"] == [{"name": "warm start", "y": 0.27}, {"name": "random walk", "y": 0.05}]
    held_out = next(s for s in learning["series"] if s["name"] == "held-out")
    assert [(p["x"][0], p["y"]) for p in held_out["points"]] == [(0, 0.27), (41000, 0.5), (61500, 0.58)]
    assert [s["name"] for s in made["Horizon and length"]["series"]][:3] == [
        f"horizon, {d}" for d in ("easy", "medium", "hard")
    ]
    assert [p["x"] for p in made["Checking again before answering"]["series"][0]["points"]] == [[1], [2]]
    assert sum(made["Actions"]["series"][1]["values"]) == pytest.approx(1)


def returned(iteration: int, policy: str, values: list[Any], success: float = 0.0) -> dict[str, Any]:
    """An evaluation that measured returns."""
    return evaluation(iteration, policy, success) | {"measures": {"return": values}}


def test_a_run_without_successes_is_told_by_its_returns_over_those_of_the_data(tmp_path: Path) -> None:
    data = {
        "kind": "data", "iteration": 0, "episodes": 4, "steps": 800, "return": -500.0,
        "histogram": {"edges": [-900.0, -600.0, -300.0], "counts": [1, 3]},
    }  # fmt: skip
    rows = [data, returned(0, "warm_start", [-1300, -1100]), training(1) | {"summary": summary(0.0)}]
    rows.append(returned(1, "agent", [-200, -160.0]))
    page = write_report(write_run(tmp_path / "run", rows, [], [])).read_text()
    assert "return of test episodes -1200 &rarr; -180 in 1 iteration" in page
    assert "On the same 2 episodes: +1020, 95% interval" in page and ">-180</td>" in page
    assert "<dt>return</dt><dd><small>-1200 &rarr;</small> -180</dd>" in page and "<dt>success</dt>" not in page
    found = {f["title"]: f for f in figures(Record(name="x", rows=rows))}
    assert next(iter(found)) == "Return" and "Success" not in found
    assert [p["y"] for p in found["Return"]["series"][0]["points"]] == [-1200, -180]
    assert found["Return"]["rules"] == [{"name": "offline data", "y": -500}]
    bars = found["Returns of the offline data"]
    assert bars["categories"] == ["-900 to -600", "-600 to -300"] and bars["series"][0]["values"] == [0.25, 0.75]
    # where something succeeds, success is what counts, and returns stand beside it
    rows[-1] = returned(1, "agent", [3.0], success=1.0)
    record = Record(name="x", rows=rows)
    assert verdict(record).startswith("held-out success 0.00 -> 1.00")
    assert [f["title"] for f in figures(record)][:2] == ["Return", "Success"]


def test_ways_of_test_episodes_are_drawn_before_and_after() -> None:
    way = {"task": "medium-1", "solved": True, "places": [[0, 0], [1, 2.5]], "goal": [1, 3]}
    odd = [{"places": [[0, "x"]]}, {"places": 3}, 7, {**way, "goal": [1], "solved": "yes"}]
    rows = [evaluation(0, "warm_start", 0.1), training(1), evaluation(1, "agent", 0.5) | {"paths": [way, *odd]}]
    found = {f["title"]: f for f in figures(Record(name="x", rows=rows))}
    assert "Ways before training" not in found
    first, second = found["Ways after"]["paths"]
    assert first["points"] == [[0, 0], [1, 2.5]] and first["goal"] == [1, 3] and first["solved"] is True
    assert second["goal"] is None and second["solved"] is False


@pytest.mark.parametrize("damage", [None, 3, {"edges": [0, 1], "counts": [1, 2]}, {"edges": [0, "x"], "counts": [1]}])
def test_returns_that_cannot_be_read_are_left_out(damage: Any) -> None:
    rows = [{"kind": "data", "histogram": damage, "return": "x"}, returned(1, "agent", [1, "x"])]
    assert not {"Return", "Returns of the offline data"} & {f["title"] for f in figures(Record(name="x", rows=rows))}


def test_the_order_of_values_along_shortest_ways_is_a_curve_of_means_over_tasks() -> None:
    rows = [
        evaluation(k, policy, 0.1) | {"measures": {"order": [k, 1.0], "success": [0.0, 0.0]}}
        for k, policy in enumerate(("warm_start", "agent"))
    ]
    rows.insert(1, training(1))
    (found,) = [f for f in figures(Record(name="x", rows=rows)) if f["title"] == "Values along shortest ways"]
    (series,) = found["series"]
    assert [p["y"] for p in series["points"]] == [0.5, 1.0]


def placed(**changes: Any) -> list[dict[str, Any]]:
    """Rows of a run whose data are in three of four cells."""
    found = {"places": True, "low": [0.0, -1.0], "high": [2.0, 1.0], "counts": [[3, 0], [4, 1]], **changes}
    return [{"kind": "data", "coverage": found}, returned(1, "agent", [1, 2.0])]


def test_where_the_data_are_is_drawn_as_shares_of_a_plane() -> None:
    found = {f["title"]: f for f in figures(Record(name="x", rows=placed()))}["Where the offline data are"]
    assert found["rows"] == [[0.375, 0], [0.5, 0.125]] and (found["low"], found["high"]) == ([0, -1], [2, 1])
    assert "plane of their places; 3 of 4 cells have any" in found["caption"]


@pytest.mark.parametrize(
    "damage",
    [
        {"counts": []},
        {"counts": [[1, 2], [3]]},
        {"counts": [[1, "x"], [3, 4]]},
        {"counts": [[0, 0], [0, 0]]},
        {"counts": [[-1, 2], [3, 4]]},
        {"counts": [3]},
        {"low": [2.0, -1.0]},
        {"high": [2.0]},
    ],
)
def test_a_plane_that_cannot_be_read_is_left_out(damage: Any) -> None:
    assert "Where the offline data are" not in {f["title"] for f in figures(Record(name="x", rows=placed(**damage)))}


def test_certainty_is_paired_over_tasks_and_leaves_failed_ones_out(tmp_path: Path) -> None:
    first = {**evaluation(0, "warm_start", 0.27), "measures": {"success": [0.0] * 20 + [1.0] * 10 + [None]}}
    last = {**evaluation(15, "agent", 0.58), "measures": {"success": [0.0] * 10 + [1.0] * 20 + [1.0]}}
    text = write_report(write_run(tmp_path / "a", [first, last], [], [])).read_text()
    found = re.search(r"On the same 30 tasks: \+33 points, 95% interval \+(\d+) to \+(\d+)\.", text)
    assert found and 5 < int(found[1]) < 33 < int(found[2]) < 65
    for name, measures in (("b", {"success": [1.0]}), ("c", {}), ("d", [1.0])):
        rows = [first, {**last, "measures": measures, "outcomes": [1.0] * 31}]
        unpaired = write_report(write_run(tmp_path / name, rows, [], [])).read_text()
        assert "95% intervals 0.22 to 0.32 before and 0.53 to 0.63 after." in unpaired


@pytest.mark.parametrize("after", [0.0, 1.0])
def test_nothing_is_certain_because_all_tasks_changed_alike(after: float, tmp_path: Path) -> None:
    first = {**evaluation(0, "warm_start", 0.27), "measures": {"success": [0.0] * 5}}
    last = {**evaluation(15, "agent", 0.58), "measures": {"success": [after] * 5}}
    text = write_report(write_run(tmp_path / "a", [first, last], [], [])).read_text()
    assert "On the same" not in text and "95% intervals 0.22 to 0.32 before and 0.53 to 0.63 after." in text


def test_certainty_is_of_successes_and_not_of_rewards(tmp_path: Path) -> None:
    half = {"outcomes": [0.5] * 20}
    first = {**evaluation(0, "warm_start", 0.0), **half, "measures": {"success": [0.0] * 20}}
    last = {**evaluation(15, "agent", 0.25), **half, "measures": {"success": [0.0] * 15 + [1.0] * 5}}
    assert (
        "On the same 20 tasks: +25 points" in write_report(write_run(tmp_path / "a", [first, last], [], [])).read_text()
    )


def test_a_mean_of_nothing_is_not_drawn_as_zero() -> None:
    row = {**training(2), "summary": summary(0.0, length_success=0.0)}
    names = [s["name"] for s in _figure([row], "Horizon and length")["series"]]
    assert "mean, all" in names and "mean, successes" not in names
    assert not figures(
        Record("x", rows=[{"kind": "train", "iteration": 1, "summary": {"episodes": 0, "success": 0.0}}])
    )


def test_equal_horizons_are_one_step_line(run: Path) -> None:
    rows = [{**training(i), "horizon": {"easy": 4 * i, "hard": 4 * i}} for i in (1, 2)]
    steps = [s for s in _figure(rows, "Horizon and length")["series"] if s["step"]]
    assert [s["name"] for s in steps] == ["horizon"]
    assert [p["y"] for p in steps[0]["points"]] == [4, 8]


def test_tokens_stand_under_their_limit_and_in_place_of_horizons_of_one_turn() -> None:
    sampled = [{**training(i), "summary": {**summary(0.1), "episodes": 10, "sampled_tokens": 100 * i}} for i in (1, 2)]
    limited = [{**row, "horizon": {"easy": 1}, "tokens": {"easy": 16 * i}} for i, row in enumerate(sampled, 1)]
    limit, mean = _figure(limited, "Tokens")["series"]
    assert limit["step"] and [p["y"] for p in limit["points"]] == [16, 32]
    assert [p["y"] for p in mean["points"]] == [10, 20]
    assert [s["name"] for s in _figure([{**r, "tokens": None} for r in limited], "Tokens")["series"]] == ["mean"]
    titles = [[f["title"] for f in figures(Record("x", rows=rows))] for rows in (limited, sampled)]
    assert "Horizon and length" not in titles[0] and "Tokens" not in titles[1]


def test_strategies_and_roles_have_lines_of_their_own_where_there_are_several() -> None:
    evals = [
        evaluation(i, policy, y, strategy)
        for i, policy in ((0, "warm_start"), (5, "agent"))
        for strategy, y in (("direct", 0.1 + i / 10), ("direct_8_turns", 0.2 + i / 10), ("check_again_2", 0.9))
    ]
    direct, rounds = _figure(evals, "Success by strategy")["series"]
    assert [p["y"] for p in direct["points"]] == pytest.approx([0.1, 0.6])
    assert [p["y"] for p in rounds["points"]] == pytest.approx([0.2, 0.7])
    roles = {"": {"episodes": 2, "success": 0.5}, "guided": {"episodes": 2, "success": 1.0}}
    train = [{**training(i), "summary": summary(0.1, by_role=roles)} for i in (1, 2)]
    assert [s["name"] for s in _figure(train, "Success by role")["series"]] == ["plain", "guided"]
    titles = [f["title"] for f in figures(Record("x", rows=ROWS))]
    assert "Success by strategy" not in titles and "Success by role" not in titles


def test_what_is_earned_inside_a_context_stands_by_episode_beside_who_plays_in_the_policys_place() -> None:
    reward = {"reward@1": [0.0, 1.0, None], "reward@2": [1.0, 2.0, 3.0], "reward@3": [2.0, 4.0, 3.0]}
    regret = {f"regret@{k}": [1.0, 2.0, 9.0] for k in (1, 2)} | {"regret@3": [1.0, 0.0, None]}
    rows = [
        {**evaluation(i, policy, 0.1, strategy), "measures": {**reward, **regret, "within@1": [0, 1, 1]} if i else {}}
        for i, policy in ((0, "warm_start"), (1, "agent"))
        for strategy in ("direct", "thompson")
    ]
    earned = _figure(rows, "Learning inside a context")
    assert [s["name"] for s in earned["series"]] == ["direct", "thompson"]
    first, *_, last = earned["series"][0]["points"]
    assert (first["x"], first["y"]) == ([1], 0.5)  # of the tasks whose trials did not fail
    assert (last["x"], last["y"], (last["lo"], last["hi"])) == ([3], 3.0, mean_interval([2.0, 4.0], seed=0))
    assert [p["y"] for p in _figure(rows, "Regret inside a context")["series"][0]["points"]] == [1.5, 3.0, 3.5]
    single = [{**row, "measures": {"reward@1": [1.0, 0.0]}} for row in rows]
    assert not {"Learning inside a context", "Regret inside a context"} & {
        f["title"] for f in figures(Record("x", rows=single))
    }


def test_a_long_run_is_thinned_and_keeps_its_start_and_its_newest_point() -> None:
    points = _figure([training(i) for i in range(1, 3 * MOST_POINTS)], "Loss")["series"][0]["points"]
    assert len(points) <= MOST_POINTS
    assert (points[0]["x"], points[-1]["x"]) == ([1], [3 * MOST_POINTS - 1])


def _figure(rows: list[dict[str, Any]], title: str) -> dict[str, Any]:
    return next(f for f in figures(Record("x", rows=rows)) if f["title"] == title)


def test_episodes_of_one_task_stand_side_by_side_with_their_evidence(run: Path) -> None:
    task = data_of(write_report(run))["episodes"]["tasks"][1]
    assert (task["outcome"], task["difficulty"]) == ("gained", "hard")
    assert (task["before"]["expected"], task["before"]["given"]) == ("red", "grey")
    assert task["before"]["evidence"] == [["evaluator", "answer"], ["matched", "false"]]
    turn = task["after"]["turns"][0]
    assert (turn["thought"], turn["said"], turn["element"]) == ("amber", "click amber lantern [3]", 3)


def test_evidence_in_parts_shows_what_each_part_expected(tmp_path: Path) -> None:
    one = episode(0, False)
    one.evidence = {"evaluator": "all", "matched": False, "parts": [
        {"expected": "red", "got": "red", "matched": True},
        {"expected": {"cart": 1}, "got": {}, "note": "state.cart: missing"},
    ]}  # fmt: skip
    shown = read_episodes(write_run(tmp_path / "run", [], [one], []))[0]["tasks"][0]["before"]
    assert (shown["expected"], shown["given"]) == ('["red", {"cart": 1}]', '["red", {}]')
    assert ("part 2", "state.cart: missing") in shown["evidence"]


@pytest.mark.parametrize("solved", [False, True])
def test_an_episode_that_failed_for_reasons_of_infrastructure_neither_gains_nor_loses(
    solved: bool, tmp_path: Path
) -> None:
    failed = episode(0, False)
    failed.stop = StopReason.INFRA_FAILURE
    for name, sides in (("a", ([episode(0, solved)], [failed])), ("b", ([failed], [episode(0, solved)]))):
        (task,) = read_episodes(write_run(tmp_path / name, [], *sides))[0]["tasks"]
        assert task["outcome"] == ("solved" if solved else "unsolved")


def test_the_viewer_takes_few_episodes_of_every_outcome_and_each_page_once(tmp_path: Path) -> None:
    before = [episode(i, False) for i in range(100)]
    run = write_run(tmp_path / "run", [], before, [episode(i, i == 99) for i in range(100)])
    chosen, notes = read_episodes(run)
    assert len(chosen["tasks"]) == report_episodes.MOST_TASKS and chosen["of"] == 100
    assert chosen["tasks"][-1]["outcome"] == "gained"
    assert chosen["pages"] == [PAGE] and notes == []


def test_a_report_of_huge_pages_stays_below_three_megabytes(tmp_path: Path) -> None:
    wild = [episode(i, True, steps=0) for i in range(24)]
    for i, t in enumerate(wild):
        text = "<\u00e9" * 5000
        t.turns = [make_turn([], [], observation=f"{i} {k}\n{text}", text=text, url=text) for k in range(8)]
    report = write_report(write_run(tmp_path / "run", ROWS, wild, wild))
    assert report.stat().st_size < 3_000_000
    shown = data_of(report)["episodes"]
    assert 0 < len(shown["tasks"]) < 24
    assert shown["tasks"][0]["before"]["turns"][0]["cut"]


def test_a_run_that_has_just_started_has_a_report_with_notes(tmp_path: Path) -> None:
    report = write_report(tmp_path)
    text = report.read_text()
    assert "nothing measured yet" in text
    assert "There is no run.toml" in text and "There is no metrics.jsonl" in text
    assert data_of(report) == {"figures": [], "episodes": {"pages": [], "tasks": [], "of": 0}}


def test_lines_cut_short_by_a_crash_are_left_out_and_noted(run: Path) -> None:
    for name in ("metrics.jsonl", "episodes/after.jsonl"):
        path = run / name
        path.write_text(path.read_text()[:-40])
    text = write_report(run).read_text()
    assert f"metrics.jsonl: line {len(ROWS)} could not be read and was left out." in text
    assert "episodes/after.jsonl: lines 1, 2, 3, 4 could not be read and were left out." in text
    assert "0.27 &rarr; 0.58" in text


@pytest.mark.parametrize("row", [
    {}, {"kind": "train"}, {"kind": "eval", "policy": "agent", "iteration": 3}, {"kind": ["train"], "iteration": "x"},
    {"kind": "train", "iteration": 2, "summary": None, "horizon": "long", "loss": float("nan")},
    {"kind": "eval", "policy": {"a": 1}, "strategy": 7,
     "iteration": 1, "summary": {"success": 10**400}, "interval": []},
    {"kind": "eval", "policy": "agent", "iteration": 1,
     "summary": {"success": 1, "actions": {"click": None}, "stops": 3}},
    {"kind": "eval", "policy": "agent", "strategy": "check_again_1", "iteration": 1, "summary": {"success": 0.5}},
    ["not", "a", "mapping"],
])  # fmt: skip
def test_rows_with_missing_or_wrong_keys_still_give_a_report(tmp_path: Path, row: Any) -> None:
    for i, rows in enumerate(([row], [training(1), row, evaluation(1, "agent", 0.5)])):
        assert data_of(write_report(write_run(tmp_path / str(i), rows, [], [])))["figures"] is not None


def test_hostile_texts_are_inert(tmp_path: Path) -> None:
    bad = episode(0, False, page=HOSTILE, goal=HOSTILE)
    bad.turns[0].text = bad.turns[0].url = bad.turns[0].error = bad.answer = HOSTILE
    bad.evidence = {HOSTILE: HOSTILE, "expected": HOSTILE}
    rows = [*ROWS, {**evaluation(15, "agent", 0.6, HOSTILE), "horizon": {HOSTILE: 3}}, evaluation(15, HOSTILE, 0.1)]
    hostile = write_report(write_run(tmp_path / "a", rows, [bad], [bad], name=HOSTILE[:-1]))
    tame = write_report(write_run(tmp_path / "b", [*ROWS, *ROWS[-2:]], [episode(0, False)], [episode(0, False)]))
    page, clean = (Page(p.read_text(encoding="utf-8")) for p in (hostile, tame))
    assert [t for t, _ in page.tags] == [t for t, _ in clean.tags]
    assert len(page.scripts) == 2
    assert "<" not in page.scripts[0]  # browsers end a script at `</script x` too
    shown = data_of(hostile)["episodes"]
    assert shown["tasks"][0]["goal"] == HOSTILE
    assert "<img src=x" in shown["pages"][0]


def test_the_report_refers_to_nothing_outside_itself(run: Path) -> None:
    text = write_report(run).read_text()
    assert not re.search(r"(https?:)?//[a-z]", re.sub(r"^\s*//.*|\s// .*", "", text, flags=re.MULTILINE))
    assert not [
        tag for tag, attributes in Page(text).tags if attributes.keys() & {"src", "href", "style"} or tag == "link"
    ]
    assert "default-src 'none'" in text and "url(" not in text and "@import" not in text


def test_scripts_put_texts_on_the_page_as_text_only(run: Path) -> None:
    script = Page(write_report(run).read_text()).scripts[1]
    assert len(script) > 1000
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|DOMParser", script
    )


def test_the_policy_of_the_page_admits_exactly_its_own_script_and_style(run: Path) -> None:
    text = write_report(run).read_text()
    policy = next(a["content"] for t, a in Page(text).tags if t == "meta" and "http-equiv" in a) or ""
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style
    for part in (style[1], Page(text).scripts[1]):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'" in policy
    assert "unsafe" not in policy


def test_a_missing_run_folder_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="expected a run folder, found none at"):
        write_report(tmp_path / "nowhere")


def test_an_unfinished_run_says_so(tmp_path: Path) -> None:
    text = write_report(write_run(tmp_path / "run", [training(1), training(2)], [], [])).read_text()
    assert "The run stands at iteration 2 of 15" in text
    assert "no held-out evaluation after it yet" in text


def test_numbers_are_read_with_care() -> None:
    row = {"a": {"b": 2, "c": True, "d": float("inf"), "e": 10**400}, "interval": [0.6, 0.4]}
    assert number(row, "a", "b") == 2.0
    assert [number(row, "a", k) for k in "cdex"] == [None] * 4 and number(row, "a", "b", "c") is None
    assert interval(row) == (0.4, 0.6)
    assert [short(v) for v in (812, 6100, 61000, 1.2e6)] == ["812", "6.1k", "61k", "1.2M"]
    assert horizon_text({"horizon": {"hard": 12, "easy": 4}}) == "4/12" and horizon_text({"horizon": 8}) == "8"


def test_importing_the_report_loads_no_torch() -> None:
    code = (
        "import sys, longstride.report; print([m for m in ('torch', 'transformers', 'starlette') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_goal_distance_budget_and_effective_horizon_are_three_columns_and_success_is_drawn_by_distance(
    tmp_path: Path,
) -> None:
    by = {"2": {"episodes": 3, "success": 1.0, "length": 2.5}, "11": {"episodes": 3, "success": 0.4, "length": 19.0}}
    far = evaluation(15, "agent", 0.7) | {"summary": summary(0.7, goal_distance=6.5, by_distance=by)}
    rows = [evaluation(0, "warm_start", 0.2), far]
    drawn = next(f for f in figures(Record("x", rows=rows)) if f["title"] == "Success by distance")
    assert [s["name"] for s in drawn["series"]] == ["after"] and drawn["axes"] == ["goal distance"]
    page = write_report(write_run(tmp_path / "run", rows, [], [])).read_text()
    titles = re.findall(r'<th scope="col">([^<]+)</th>', page)
    assert [t for t in titles if t in HORIZONS.values()] == ["goal distance", "budget", "effective horizon"]


def test_many_distances_are_drawn_in_ranges_by_their_episodes() -> None:
    by = {str(d): {"episodes": 1 if d % 2 else 3, "success": float(d < 8), "length": 2.0} for d in range(2, 18)}
    row = evaluation(15, "agent", 0.7) | {"summary": summary(0.7, by_distance=by)}
    rows = [evaluation(0, "warm_start", 0.2), row]
    drawn = next(f for f in figures(Record("x", rows=rows)) if f["title"] == "Success by distance")
    points = [(p["x"][0], p["y"]) for p in drawn["series"][0]["points"]]
    # halves of octaves: 2, 3, 4, 5 and 6, 7 to 9, 10 to 13, 14 to 17
    assert points[:3] == [(2, 1), (3, 1), (4, 1)] and points[3] == ((5 + 3 * 6) / 4, 1)
    assert points[4] == ((7 + 3 * 8 + 9) / 5, 1 / 5) and len(points) == 7


def test_a_difference_in_points_is_one_number_however_it_is_reached() -> None:
    assert points(0.465, 0.740) == points(0, 0.275) == "+28 points"


def test_of_a_report_that_cannot_be_written_nothing_is_left(tmp_path, monkeypatch):
    run = write_run(tmp_path / "run", ROWS, [], [])

    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("longstride.report.html.os.replace", full)
    before = sorted(run.iterdir())
    with pytest.raises(RunError, match=r"cannot write .*report\.html: No space left"):
        write_report(run)
    assert sorted(run.iterdir()) == before

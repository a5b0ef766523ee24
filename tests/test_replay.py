"""Replay by reference: entries are drawn like the trajectories that they stand for, and read back from the store."""

import random

import numpy as np
import pytest

from longstride.bench import store as benchmark
from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError, RunError
from longstride.core.task import DIFFICULTIES, Task
from longstride.core.trajectory import Entry, TaskKey, Trajectory, Turn
from longstride.methods import OnPolicy, Replay, TTIReplay
from longstride.rollout.store import TrajectoryStore


def episode(ordinal: int, rng: random.Random) -> Trajectory:
    k = rng.randrange(9)
    task = Task(
        id=f"t{k}", source=f"s{k % 3}", difficulty=DIFFICULTIES[k % 2], template_id=f"m{k // 4}", goal="g", start="s"
    )
    turns = [Turn([1], [2], [-0.5], [0], "page", "text") for _ in range(rng.randrange(1, 9))]
    stop, answer = rng.choice(list(StopReason)), rng.choice([None, "red", " N/A "])
    return Trajectory(task, ordinal, 1, Budget(), turns, stop, answer, float(rng.randrange(2)), group=ordinal // 4)


def history(n: int) -> list[Trajectory]:
    rng = random.Random(1)
    return [episode(i, rng) for i in range(n)]


def test_an_entry_has_the_facts_of_its_trajectory():
    task = Task(id="t", source="s", difficulty="hard", template_id="m", goal="g", start="")
    turns = [Turn([1], [2], [-0.5], [0], "page", "text")] * 3
    t = Trajectory(task, 7, 1, Budget(), turns, StopReason.ANSWERED, " N/A ", 0.5, group=4, iteration=2)
    assert t.entry() == Entry(TaskKey("t", "s", "hard", "m"), 7, 0.5, 3, StopReason.ANSWERED, True, 4, 2)
    assert t.entry().success and t.success


@pytest.mark.parametrize(("answer", "infeasible"), [("N/A", True), (" n/a\n", True), ("n/a red", False), (None, False)])
def test_an_answer_says_that_a_task_cannot_be_done_in_any_case_and_spacing(answer, infeasible):
    t = history(1)[0]
    t.answer = answer
    assert t.infeasible == t.entry().infeasible == infeasible


@pytest.mark.parametrize("replay", [TTIReplay(), OnPolicy()])
def test_an_entry_is_admitted_where_its_trajectory_is(replay: Replay):
    admitted = [replay.admits(t) for t in history(200)]
    assert admitted == [replay.admits(t.entry()) for t in history(200)]
    assert {True, False} == set(admitted)


@pytest.mark.parametrize(
    "replay",
    [
        OnPolicy(),
        TTIReplay(keep=20),
        TTIReplay(keep=500),
        TTIReplay(keep=20, mix=1.0, top_p=0.5),
        TTIReplay(keep=10, mix=0.2, balance="difficulty", top_p=0.8),
        TTIReplay(keep=10, mix=0.0, balance="template_id"),
    ],
)
def test_entries_are_drawn_like_trajectories_by_the_same_random_numbers(replay: Replay):
    kept = [t for t in history(300) if replay.admits(t)]
    one, other = random.Random(3), random.Random(3)
    drawn = replay.draw([t.entry() for t in kept], 7, one)
    assert [e.ordinal for e in drawn] == [t.ordinal for t in replay.draw(kept, 7, other)] != []
    assert one.getstate() == other.getstate()


def test_draws_stay_what_they_were_when_only_trajectories_were_drawn():
    kept = [t.entry() for t in history(120) if TTIReplay().admits(t)]
    drawn = TTIReplay(keep=8, top_p=0.9).draw(kept, 0, random.Random(3))
    assert [e.ordinal for e in drawn] == [31, 32, 42, 44, 65, 79, 99, 100]


def test_what_is_drawn_is_read_from_the_store_by_its_ordinals_before_and_after_a_resume(tmp_path):
    replay, episodes = TTIReplay(keep=9), history(100)
    store = TrajectoryStore(tmp_path / "trajectories.jsonl")
    for start in range(0, 100, 25):
        store.append(episodes[start : start + 25])
    expected = replay.draw([t for t in episodes if replay.admits(t)], 0, random.Random(2))
    for there in (store, TrajectoryStore(store.path)):
        drawn = replay.draw([e for e in there.entries if replay.admits(e)], 0, random.Random(2))
        assert there.read(e.ordinal for e in drawn) == expected


class TestBenchmark:
    def test_both_sides_draw_the_same_of_what_is_in_the_file_and_appended(self, tmp_path, monkeypatch):
        monkeypatch.setattr(benchmark, "REPLAY", TTIReplay(keep=300))
        monkeypatch.setattr(benchmark, "BATCH", 100)
        seen = {}
        for side in (benchmark.ByReference, benchmark.InMemory):
            path = tmp_path / side.__name__ / "trajectories.jsonl"
            path.parent.mkdir()
            benchmark._write(path, 150)
            seen[side] = benchmark._round(side, path, 150, seed=0)
            assert [t.ordinal for t in TrajectoryStore(path)] == list(range(150 + 100 * benchmark.APPENDS))
        ours, theirs = seen.values()
        assert ours["drawn"] == theirs["drawn"] and len(set(ours["drawn"])) == 300
        assert ours.keys() == theirs.keys() and ours["peak memory"] > 0

    def test_sides_that_drew_different_trajectories_are_not_compared(self):
        quantities = ("append a batch", "open", "sample", "peak memory", "memory once open")
        side = {name: np.ones(2) for name in quantities} | {"drawn": np.ones((2, 3))}
        rows = benchmark._rows({"ours": side, "in memory": side}, 1000)
        assert len(rows) == 5 and all(row.against == "in memory" for row in rows)
        assert all(row.peer is None for row in benchmark._rows({"ours": side}, 1000))
        with pytest.raises(RunError, match="different ones of 1,000"):
            benchmark._rows({"ours": side, "in memory": side | {"drawn": np.zeros((2, 3))}}, 1000)

    def test_it_takes_no_peer(self):
        with pytest.raises(ConfigError, match="leave --peer out"):
            benchmark.measure("python", 2, print)

"""The benchmarks store, train, turns and step, at sizes of seconds: what they measure, and what ends them."""

import sys
from pathlib import Path

import numpy as np
import pytest

from longstride.bench import gateway, search, step, store, train, turns
from longstride.bench.peers import Peer
from longstride.core.errors import ConfigError, RunError
from longstride.engines.base import Request
from longstride.models.tiny import TinyConfig, build_model
from longstride.papers.tti.method import TTIReplay
from longstride.rollout.store import TrajectoryStore
from longstride.strategies.search import Beam


def quiet(_: str) -> None: ...


@pytest.mark.slow
def test_store_measures_both_sides_up_to_a_size_and_ours_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SIZES", (600, 700))
    monkeypatch.setattr(store, "LARGEST_IN_MEMORY", 600)
    rows, _ = store.measure(None, 1, quiet)
    both, ours = rows[:5], rows[5:]
    assert [row.name for row in both] == [
        f"600: {name}" for name in ("append a batch", "open", "sample", "peak memory", "memory once open")
    ]
    assert all(row.peer is not None and np.shape(row.peer) == np.shape(row.ours) == (1,) for row in both)
    assert [row.name for row in ours][:2] == ["700: append a batch", "700: open"]
    assert all(row.peer is None for row in ours)
    assert all(np.all(np.asarray(row.ours) > 0) for row in rows if row.unit == "ms")


@pytest.mark.slow
def test_store_leaves_its_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "trajectories.jsonl"
    store._write(path, 300)
    before = path.read_bytes()
    assert store._in_a_process(store.ByReference, path, 300, 0)["drawn"]
    assert path.read_bytes() == before


def test_both_sides_of_store_draw_the_same_of_what_is_in_the_file_and_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "REPLAY", TTIReplay(keep=300))
    monkeypatch.setattr(store, "BATCH", 100)
    seen = {}
    for side in (store.ByReference, store.InMemory):
        path = tmp_path / side.__name__ / "trajectories.jsonl"
        path.parent.mkdir()
        store._write(path, 150)
        seen[side] = store._round(side, path, 150, seed=0)
        assert [t.ordinal for t in TrajectoryStore(path)] == list(range(150 + 100 * store.APPENDS))
    ours, theirs = seen.values()
    assert ours["drawn"] == theirs["drawn"] and len(set(ours["drawn"])) == 300
    assert ours.keys() == theirs.keys() and ours["peak memory"] > 0


def test_sides_of_store_that_drew_different_trajectories_are_not_compared() -> None:
    quantities = ("append a batch", "open", "sample", "peak memory", "memory once open")
    side = {name: np.ones(2) for name in quantities} | {"drawn": np.ones((2, 3))}
    rows = store._rows({"ours": side, "in memory": side}, 1000)
    assert len(rows) == 5 and all(row.against == "in memory" for row in rows)
    assert all(row.peer is None for row in store._rows({"ours": side}, 1000))
    with pytest.raises(RunError, match="different ones of 1,000"):
        store._rows({"ours": side, "in memory": side | {"drawn": np.zeros((2, 3))}}, 1000)


@pytest.fixture
def few_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TURNS", (2, 3, 5))
    monkeypatch.setattr(turns, "MODEL", TinyConfig(context=300))


@pytest.mark.usefixtures("few_turns")
def test_turns_has_a_row_a_length_and_the_exponents() -> None:
    rows, versions = turns.measure(None, 2, quiet)
    assert "torch" in versions
    for kind in turns.KINDS:
        names = [row.name.removeprefix(kind) for row in rows if row.name.startswith(kind)]
        assert names == [
            *(f", {n} turns" for n in (2, 3, 5)),
            *(f": exponent of turns, {s}" for s in ("merged", "a row a turn")),
        ]


@pytest.mark.usefixtures("few_turns")
def test_turns_ends_where_the_sides_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    rows_of = turns.row_of
    monkeypatch.setattr(turns, "row_of", lambda samples, chain, table: rows_of(samples, [0], table))
    with pytest.raises(RunError, match="the loss of merged rows is not"):
        turns.measure(None, 2, quiet)


def test_exponents_are_slopes_of_the_logarithms() -> None:
    n = np.array(turns.TURNS, float)
    assert turns.exponents(np.stack([0.5 * n, 3 * n**2])) == pytest.approx([1, 2])


SMALL_STEP = step.StepWork(
    step.SHAPE | {"vocab_size": 64, "hidden_size": 16, "num_hidden_layers": 1},
    groups=2, siblings=2, new=3, prompt=(4, 6), steps=2,
)  # fmt: skip


def test_step_is_generation_and_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "WORK", SMALL_STEP)
    rows, _ = step.measure(None, 2, quiet)
    whole, *parts = (np.asarray(row.ours) for row in rows)
    assert [row.name for row in rows] == ["step", "step: generation", "step: learner"]
    assert whole == pytest.approx(sum(parts)) and np.all(whole > 0)


@pytest.mark.parametrize(
    ("python", "error", "message"),
    [("/nowhere/python", ConfigError, "cannot be run"), ("false", RunError, "could not be measured")],
)
def test_step_says_what_is_wrong_with_a_peer(python: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        step.ask_trl(python, SMALL_STEP, 0, {})


@pytest.mark.parametrize("module", [store, turns])
def test_a_benchmark_without_a_peer_refuses_one(module) -> None:
    with pytest.raises(ConfigError, match="leave --peer"):
        module.measure("python", 2, quiet)


@pytest.mark.slow
def test_train_plays_the_same_tasks_on_both_sides_and_says_how_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "EPISODES", 6)
    monkeypatch.setattr(train, "RECIPE", train.RECIPE.replace(engine={"processes": 2}, test_budget={"turns": 2}))
    rows, versions = train.measure(None, 2, quiet)
    found = {row.name: row for row in rows}
    speed = found["episodes played"]
    assert speed.peer is not None and np.shape(speed.ours) == np.shape(speed.peer) == (2,)
    assert np.all(np.asarray(speed.ours) > 0)
    tokens = found["sampled tokens of a round, plain over ours"]
    assert tokens.peer is not None
    assert np.asarray(tokens.ours) == pytest.approx(np.asarray(tokens.peer), rel=0.2)
    assert np.all(np.asarray(found["the environment's share of playing"].ours) > 0)
    assert np.all(np.asarray(found["episodes played and learned from"].ours) < np.asarray(speed.ours))
    shares = [row.ours for name, row in found.items() if "matrix products" in name]
    assert len(shares) == 4 and np.all(np.asarray(shares) > 0)
    assert "processes" in versions["settings"] and "threads" in versions["settings"]
    with pytest.raises(ConfigError, match="leave --peer python out"):
        train.measure("python", 2, quiet)
    one, other = train.plans_of(train.RECIPE, 0), train.plans_of(train.RECIPE, 1)
    assert [p.task for p in one] != [p.task for p in other] and one == train.plans_of(train.RECIPE, 0)


@pytest.mark.slow
def test_search_measures_samples_and_searches_beside_nothing_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"SHAPE": TinyConfig(context=64), "PROMPT": 20, "NEW": (3,), "SAMPLES": 4, "TASKS": 2}
    for name, value in small.items():
        monkeypatch.setattr(search, name, value)
    monkeypatch.setattr(search, "SEARCHES", {"beam": Beam(n=4, width=2)})
    samples, apart, _, read, twice = search.measure(None, 2, quiet)[0]
    assert samples.goal == search.WITHIN and apart.peer is not None and np.shape(apart.peer) == (2,)
    assert twice.goal == 0 and not np.any(twice.ours)
    assert read.peer is not None and np.all(5 * np.asarray(read.ours) < np.asarray(read.peer))
    with pytest.raises(ConfigError, match="leave --peer python out"):
        search.measure("python", 2, quiet)


def test_search_counts_what_is_read_twice_and_nothing_else() -> None:
    model = build_model(TinyConfig(context=64), 50, 0)
    engine = search.CountedEngine(model, frozenset(), 64, max_batch=1)
    (first,) = engine.generate([Request([1, 2, 3], 4, seed=0)])
    engine.generate([Request([1, 2, 3, *first.ids], 1, seed=1), Request([1, 2, 3], 1, seed=2)])
    assert (engine.tokens_in, engine.read_twice) == (4, 0)  # the last sampled token was not read before
    engine.generate([Request([9, 9], 1, seed=3), Request([1, 2, 3], 1, seed=4)])
    assert (engine.tokens_in, engine.read_twice) == (9, 3)  # there is one slot


def test_gateway_measures_turns_that_are_those_of_the_native_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EPISODES", "TURNS", "WIDE"):
        monkeypatch.setattr(gateway, name, 2)
    rows, _ = gateway.measure(None, 1, quiet)
    turn, added, rate = rows
    assert turn.peer is not None and np.all(np.asarray(turn.ours) - np.asarray(turn.peer) == np.asarray(added.ours))
    assert np.all(np.asarray(rate.ours) > 0)
    assert rate.peer is None
    with pytest.raises(ConfigError, match=r"--peer .*python.* has no rllm-model-gateway; make it:"):
        gateway.measure(sys.executable, 1, quiet)


def test_gateway_is_measured_beside_a_peer_that_lost_nothing(tmp_path: Path) -> None:
    program = tmp_path / "rllm_peer.py"
    program.write_text("""import json, sys
for line in sys.stdin:
    turns = json.loads(line)["episodes"] * json.loads(line)["turns"]
    print(json.dumps({"seconds": 2.0, "traces": turns, "version": "1"}), flush=True)
""")
    versions: dict[str, str] = {}
    with Peer(sys.executable, program) as peer:
        assert gateway._peer_rate(peer, versions) == gateway.WIDE * gateway.TURNS / 2
    assert versions == {"rllm-model-gateway": "1"}
    program.write_text(program.read_text().replace('"traces": turns', '"traces": turns - 1'))
    with Peer(sys.executable, program) as peer, pytest.raises(RunError, match="kept 511 of 512 turns"):
        gateway._peer_rate(peer, versions)

"""State machines: arbitrary sequences of what may happen to a trajectory store, a run folder and a pool, each compared
with a list in memory.

LONGSTRIDE_SOAK=1 explores two hundred sequences of up to fifty steps of each, other ones every time; by default it is
a few, always the same."""

import itertools
import os
import shutil
import tempfile
import warnings
from pathlib import Path

import pytest
import torch
from helpers import hard_to_keep, make_task
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from one_page import make_recipe
from polled_walks import Model, Walk

from longstride.core.budget import Budget
from longstride.core.errors import LongstrideWarning, RunError
from longstride.core.seeds import stream
from longstride.core.trajectory import Trajectory
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, PoolConfig
from longstride.rollout.store import TrajectoryStore
from longstride.run.checkpoint import checkpoint_folders
from longstride.run.folder import RunFolder, read_rows
from longstride.run.listener import Silent

SOAK = "LONGSTRIDE_SOAK" in os.environ
EXPLORED = settings(
    max_examples=200 if SOAK else 8, stateful_step_count=50 if SOAK else 12, deadline=None, derandomize=not SOAK,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
)  # fmt: skip
SHARES = st.floats(0, 1, exclude_max=True)
"""Where in a file, as a share of it."""


def flip(path: Path, share: float, bit: int) -> bytes:
    """Flips a bit; returns what was there."""
    before = path.read_bytes()
    data = bytearray(before)
    data[int(share * len(data))] ^= 1 << bit
    path.write_bytes(data)
    return before


class InFolder(RuleBasedStateMachine):
    """One with a folder of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="longstride-machine-"))

    def teardown(self) -> None:
        shutil.rmtree(self.folder)


class StoreMachine(InFolder):
    """A trajectory store whose writer is killed, whose index lags behind or is damaged, and whose lines are."""

    def __init__(self) -> None:
        super().__init__()
        self.path = self.folder / "trajectories.jsonl"
        self.index = self.path.with_suffix(".index")
        self.store = TrajectoryStore(self.path)
        self.written: list[Trajectory] = []
        self.older: list[bytes] = [b""]
        """What the index file was."""

    @rule(sizes=st.lists(st.integers(0, 9), max_size=4))
    def append(self, sizes: list[int]) -> None:
        batch = [hard_to_keep(len(self.written) + k, tokens=n) for k, n in enumerate(sizes)]
        self.store.append(batch)
        self.written += batch
        if self.index.exists():
            self.older.append(self.index.read_bytes())

    @rule(share=SHARES)
    def go_back(self, share: float) -> None:
        n = int(share * (len(self.written) + 1))
        self.store.truncate(n)
        del self.written[n:]

    @rule()
    def open_again(self) -> None:
        self.store = TrajectoryStore(self.path)

    @precondition(lambda self: self.path.exists())
    @rule(share=SHARES)
    def die_in_a_write(self, share: float) -> None:
        line = hard_to_keep(len(self.written)).to_json().encode()
        with self.path.open("ab") as f:
            f.write(line[: int(share * len(line))])
        self.open_again()

    @rule(share=SHARES)
    def find_an_older_index(self, share: float) -> None:
        self.index.write_bytes(self.older[int(share * len(self.older))])
        self.open_again()

    @precondition(lambda self: self.index.exists() and self.index.stat().st_size)
    @rule(share=SHARES, bit=st.integers(0, 7))
    def damage_the_index(self, share: float, bit: int) -> None:
        flip(self.index, share, bit)
        self.open_again()

    @precondition(lambda self: self.written)
    @rule(share=SHARES, bit=st.integers(0, 7))
    def damage_a_line(self, share: float, bit: int) -> None:
        self.store.truncate(len(self.written))  # without a part of a line behind the whole ones
        place = int(share * self.path.stat().st_size)
        line = self.path.read_bytes()[:place].count(b"\n") + 1
        before = flip(self.path, share, bit)
        with pytest.raises(RunError, match=rf"trajectories\.jsonl, line {line}: |holds \d+ trajectories"):
            damaged = TrajectoryStore(self.path)
            damaged.check(len(self.written))
            damaged.truncate(len(self.written))  # the last line may have lost its end, and counts no more
        self.path.write_bytes(before)
        self.open_again()

    @invariant()
    def holds_what_was_written(self) -> None:
        assert list(self.store) == self.written
        assert list(self.store.records) == [t.record() for t in self.written]
        self.store.check(len(self.written))


class RunMachine(InFolder):
    """A run folder: iterations, checkpoints, kills, power cuts and damage, and a resume after each."""

    def __init__(self) -> None:
        super().__init__()
        self.recipe = make_recipe(Path("base"), iterations=99)
        self.rows: list[int] = []
        self.episodes: list[Trajectory] = []
        self.saved: dict[int, tuple[int, int]] = {}
        """Rows and episodes of each checkpoint that is kept, by iteration."""
        self.numbers = itertools.count()
        self.open()
        self.save()

    @property
    def home(self) -> Path:
        return self.folder / "run"

    def open(self) -> None:
        self.run = RunFolder(self.recipe, self.home, Silent(), resume=True)

    @rule()
    def save(self) -> None:
        i = self.run.iteration
        self.run.keep(Path.mkdir, {"w": torch.full((3,), float(i))}, {"episodes": len(self.episodes)})
        self.flushed = (self.home / "metrics.jsonl").stat().st_size
        self.saved[i] = len(self.rows), len(self.episodes)
        for old in sorted(self.saved)[:-2]:
            if old:
                del self.saved[old]

    @rule(n=st.integers(0, 3))
    def iterate(self, n: int) -> None:
        batch = [hard_to_keep(len(self.episodes) + k) for k in range(n)]
        self.run.collect(self.run.iteration + 1, batch)
        self.episodes += batch
        self.rows.append(next(self.numbers))
        self.run.row("train", number=self.rows[-1])

    @rule()
    def iterate_and_save(self) -> None:
        self.iterate(2)
        self.save()

    def resume(self, chosen: int) -> None:
        """Opens the folder again; it goes on from iteration `chosen`."""
        self.open()
        rows, episodes = self.saved[chosen]
        del self.rows[rows:], self.episodes[episodes:]
        self.saved = {i: known for i, known in self.saved.items() if i <= chosen}
        assert self.run.iteration == chosen and self.run.checkpoint is not None
        assert self.run.checkpoint.tensors()["w"].tolist() == [chosen] * 3
        self.flushed = (self.home / "metrics.jsonl").stat().st_size

    @rule(row=SHARES, line=SHARES, saving=st.booleans())
    def kill(self, row: float, line: float, saving: bool) -> None:
        """In the middle of a row, of a line, or of a checkpoint."""
        for name, share in (("metrics.jsonl", row), ("trajectories.jsonl", line)):
            data = hard_to_keep(len(self.episodes)).to_json().encode()
            with (self.home / name).open("ab") as f:
                f.write(data[: int(share * len(data))])
        if saving:
            shutil.copytree(checkpoint_folders(self.home)[-1], self.home / "checkpoints" / "partial")
        self.resume(max(self.saved))

    @rule(share=SHARES)
    def cut_the_power(self, share: float) -> None:
        """Rows that were not flushed are lost; the file may end anywhere behind those that were."""
        path = self.home / "metrics.jsonl"
        size = path.stat().st_size
        os.truncate(path, self.flushed + int(share * (size - self.flushed + 1)))
        self.resume(max(self.saved))

    @rule(name=st.sampled_from(["trainer.json", "trainer.safetensors"]), share=SHARES, bit=st.integers(0, 7))
    def damage_the_newest_checkpoint(self, name: str, share: float, bit: int) -> None:
        newest, *others = sorted(self.saved, reverse=True)[:2]
        path = self.home / "checkpoints" / f"{newest:06d}" / name
        self.after_damage(path, flip(path, share, bit), others, f"{newest:06d}/{name}")

    @precondition(lambda self: self.rows)
    @rule(name=st.sampled_from(["metrics.jsonl", "trajectories.jsonl"]), share=SHARES, bit=st.integers(0, 7))
    def damage_a_line(self, name: str, share: float, bit: int) -> None:
        path, kind = self.home / name, 0 if name == "metrics.jsonl" else 1
        if not path.exists() or not path.stat().st_size:
            return
        line = path.read_bytes()[: int(share * path.stat().st_size)].count(b"\n")
        recent = sorted(self.saved, reverse=True)[:2]
        whole = [i for i in recent if self.saved[i][kind] <= line]
        before = flip(path, share, bit)
        if whole[:1] == recent[:1]:  # what no checkpoint counts is made again
            self.resume(recent[0])
        else:
            self.after_damage(path, before, whole, name)

    def after_damage(self, path: Path, before: bytes, whole: list[int], named: str) -> None:
        """The run goes on from the newest checkpoint that is whole, with a warning, or is refused and left as it is."""
        if whole:
            with pytest.warns(LongstrideWarning, match=rf"{named}|are there"):
                self.resume(whole[0])
            return
        files = {p: p.read_bytes() for p in self.home.rglob("*") if p.is_file()}
        with pytest.raises(RunError, match=rf"cannot be resumed: .*({named}|are there)"), warnings.catch_warnings():
            self.open()
        assert files.items() <= {p: p.read_bytes() for p in self.home.rglob("*") if p.is_file()}.items()
        path.write_bytes(before)
        self.resume(max(self.saved))

    @invariant()
    def holds_what_was_written(self) -> None:
        path = self.home / "metrics.jsonl"
        assert [row["number"] for row in (read_rows(path) if path.exists() else [])] == self.rows
        assert list(self.run.store) == self.episodes and self.run.episodes == len(self.episodes)
        assert {int(p.name) for p in checkpoint_folders(self.home)} == set(self.saved)


class PoolMachine(RuleBasedStateMachine):
    """A pool that is given plans, new weights, pauses and its end, while episodes and the player fail."""

    @initialize(
        batch=st.integers(1, 6), together=st.booleans(), retries=st.integers(0, 2),
        fails=st.frozensets(st.integers(0, 40), max_size=6), trouble=st.frozensets(st.integers(0, 4), max_size=1),
    )  # fmt: skip
    def begin(self, batch: int, together: bool, retries: int, fails: frozenset[int], trouble: frozenset[int]) -> None:
        self.batch, self.config = batch, PoolConfig(lockstep=together, retries=retries)
        self.fails, self.trouble = fails, trouble
        self.version, self.next = 0, 0
        self.waiting: dict[int, int] = {}
        """The version under which each plan was submitted, by ordinal."""
        self.open()

    def open(self) -> None:
        self.model = Model(fails=self.fails)
        self.model.version = self.version
        self.pool = Pool(self.model, lambda: Walk(trouble=self.trouble), TaskReward(), self.batch, self.config)
        self.pool.__enter__()

    def close(self) -> None:
        self.pool.__exit__(None, None, None)
        assert Walk.live == 0 and not self.model.rows and set(self.model.released.values()) <= {1}

    def plans(self, ordinals: list[int]) -> list[Plan]:
        return [Plan(make_task(), n, n + 100, Budget(turns=9), group=n) for n in ordinals]

    @rule(n=st.integers(0, 5))
    def submit(self, n: int) -> None:
        new = list(range(self.next, self.next + n))
        self.pool.submit(self.plans(new))
        self.waiting |= dict.fromkeys(new, self.version)
        self.next += n

    @rule(order=st.randoms(use_true_random=False), share=SHARES)
    def collect(self, order, share: float) -> None:
        """Some of what was submitted, in any order: each is there once, is what its plan says, and is as new as its
        submission."""
        wanted = sorted(self.waiting)
        order.shuffle(wanted)
        wanted = wanted[: int(share * (len(wanted) + 1))]
        found = self.pool.collect(wanted)
        assert [t.ordinal for t in found] == wanted
        for t in found:
            submitted = self.waiting.pop(t.ordinal)
            versions = [v for turn in t.turns for v in turn.versions]
            assert all(submitted <= v <= self.version for v in versions) and versions == sorted(versions)
            length = stream(t.seed, "walk").randint(1, 6)
            engine_failed = t.ordinal in self.fails and length > 1
            assert t.stop.failed == (engine_failed or any(n < length for n in self.trouble))
            assert t.stop.failed or (t.length == length and t.reward == 1)

    @rule()
    def update(self) -> None:
        self.version += 1
        self.pool.run_on_sampler_thread(lambda: setattr(self.model, "version", self.version))

    @rule()
    def pause(self) -> None:
        with self.pool.paused():
            assert not self.model.rows

    @rule()
    def end_and_go_on(self) -> None:
        """What was played to its end is kept, and not played again; the rest is played anew."""
        finished = self.pool.finished()
        self.close()
        self.open()
        self.pool.restore(finished)
        again = sorted(self.waiting)
        self.pool.submit(self.plans(again))
        kept = {t.ordinal for t in finished}
        assert kept <= set(again)
        self.waiting |= {n: self.version for n in again if n not in kept}

    def teardown(self) -> None:
        if hasattr(self, "pool"):
            assert [t.ordinal for t in self.pool.collect(sorted(self.waiting))] == sorted(self.waiting)
            self.close()


TestStore, TestRun, TestPool = StoreMachine.TestCase, RunMachine.TestCase, PoolMachine.TestCase
TestStore.settings = TestRun.settings = TestPool.settings = EXPLORED

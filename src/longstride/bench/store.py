"""The trajectory store and replay by reference, against a run that keeps every trajectory in memory.

What always holds: both sides work on the same file, in a process of their own that did nothing before, and draw the
same trajectories, or the benchmark ends with an error; the files are removed at the end.
"""

import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from longstride.bench.base import Benchmark, Progress, Quantity, in_turn
from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError, RunError
from longstride.core.sealed import place_of, seal, unseal
from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.core.trajectory import EpisodeRecord, Trajectory, Turn
from longstride.papers.tti.method import TTIReplay
from longstride.rollout.store import TrajectoryStore

SIZES = (1_000, 10_000, 100_000)
"""Trajectories in the file."""
LARGEST_IN_MEMORY = 10_000
"""The largest file that the other side reads: it takes some 35 kB a trajectory."""
TURNS, PAGE_TOKENS, SAID_TOKENS = 10, 24, 8
TASKS, SITES, VOCABULARY = 1_000, 8, 512
BATCH, APPENDS = 256, 4
"""Trajectories of a batch, and batches appended in a round."""
REPLAY = TTIReplay(keep=512)
"""What is drawn."""
NOTHING_ELSE: Any = None
"""The experience that the draw may read: `TTIReplay` reads none."""


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Quantity], dict[str, str]]:
    """The rows; the other side is of ours too, so there is no `peer`.

    Raises:
        ConfigError: a peer was given.
        RunError: the sides drew different trajectories; or a full disk.
    """
    if peer is not None:
        raise ConfigError("the store is measured against Longstride's own code; leave --peer out")
    rows: list[Quantity] = []
    for n in SIZES:
        with TemporaryDirectory(prefix="longstride-store-") as folder:
            progress(f"{n:,} trajectories are written")
            path = Path(folder) / "trajectories.jsonl"
            _write(path, n)
            sides = {"ours": partial(_in_a_process, ByReference, path, n)}
            if n <= LARGEST_IN_MEMORY:
                sides["in memory"] = partial(_in_a_process, InMemory, path, n)
            rows += _rows(in_turn(sides, rounds, progress), n)
    return rows, {}


def _rows(seen: Mapping[str, Mapping[str, Any]], n: int) -> list[Quantity]:
    ours, theirs = seen["ours"], seen.get("in memory")
    units = {"append a batch": "ms", "open": "ms", "sample": "ms", "peak memory": "MB", "memory once open": "B each"}
    if theirs is None:
        return [Quantity(f"{n:,}: {name}", unit, ours[name]) for name, unit in units.items()]
    if (ours["drawn"] != theirs["drawn"]).any():
        raise RunError(f"the two sides drew different ones of {n:,} trajectories; nothing was measured")
    return [Quantity(f"{n:,}: {name}", unit, ours[name], theirs[name], "in memory") for name, unit in units.items()]


class ByReference:
    """A run's history as records; the turns stay in the store."""

    def __init__(self, path: Path) -> None:
        self.store = TrajectoryStore(path)
        self.kept = [r for r in self.store.records if REPLAY.admits(r)]

    def append(self, batch: Sequence[Trajectory]) -> None:
        self.store.append(batch)
        self.kept += [r for r in self.store.records[-len(batch) :] if REPLAY.admits(r)]

    def sample(self, rng: random.Random) -> list[Trajectory]:
        return self.store.read(r.ordinal for r in drawn(self.kept, rng))


class InMemory:
    """A run's history as trajectories: the file is read whole at opening, and appended to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept: list[EpisodeRecord] = []
        self.episodes: dict[int, Trajectory] = {}
        self.lines = 0
        with open(path, "rb") as f:
            for line in f:
                self._keep(Trajectory.from_json(unseal(line[:-1], place_of(self.lines)).decode("ascii")))
                self.lines += 1

    def append(self, batch: Sequence[Trajectory]) -> None:
        with open(self.path, "a", encoding="ascii") as f:
            f.writelines(seal(t.to_json(), place_of(k)) + "\n" for k, t in enumerate(batch, self.lines))
            f.flush()
            os.fsync(f.fileno())
        self.lines += len(batch)
        for t in batch:
            self._keep(t)

    def sample(self, rng: random.Random) -> list[Trajectory]:
        return [self.episodes[r.ordinal] for r in drawn(self.kept, rng)]

    def _keep(self, trajectory: Trajectory) -> None:
        record = trajectory.record()
        if REPLAY.admits(record):
            self.kept.append(record)
            self.episodes[record.ordinal] = trajectory


def drawn(kept: Sequence[EpisodeRecord], rng: random.Random) -> list[EpisodeRecord]:
    """What an update trains on."""
    return REPLAY.draw(kept, BATCH, rng, NOTHING_ELSE)


def _in_a_process(side: Callable[[Path], ByReference | InMemory], path: Path, n: int, seed: int) -> dict[str, Any]:
    """A round of a side; the file is left as it was found."""
    size = path.stat().st_size
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        seen = pool.submit(_round, side, path, n, seed).result()
    os.truncate(path, size)
    return seen


def _round(side: Callable[[Path], ByReference | InMemory], path: Path, n: int, seed: int) -> dict[str, Any]:
    """Milliseconds and memory of opening a file of `n` trajectories, of appending to it and of sampling; the ordinals
    that were drawn."""
    batches = [list(_episodes(range(n + k * BATCH, n + (k + 1) * BATCH))) for k in range(APPENDS)]
    before = _resident("VmRSS")
    began = time.perf_counter()
    history = side(path)
    opened, once_open = 1000 * (time.perf_counter() - began), _resident("VmRSS") - before
    appends = []
    for batch in batches:
        began = time.perf_counter()
        history.append(batch)
        appends.append(1000 * (time.perf_counter() - began))
    began = time.perf_counter()
    drawn = history.sample(stream(seed, "bench"))
    return {
        "sample": 1000 * (time.perf_counter() - began),
        "open": opened,
        "append a batch": float(np.median(appends)),
        "memory once open": once_open / n,
        "peak memory": (_resident("VmHWM") - before) / 1e6,
        "drawn": [t.ordinal for t in drawn],
    }


def _resident(field: str) -> int:
    """Bytes of this process in memory, now (`VmRSS`) or at most so far (`VmHWM`): Linux's /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def _write(path: Path, n: int) -> None:
    store = TrajectoryStore(path)
    for start in range(0, n, BATCH):
        store.append(list(_episodes(range(start, min(start + BATCH, n)))))


def _episodes(ordinals: Iterable[int]) -> Iterator[Trajectory]:
    """Made-up successes; two of them that are a batch apart have the same turns."""
    for ordinal in ordinals:
        k = stream(ordinal, "bench").randrange(TASKS)
        task = Task(id=f"task-{k}", source=f"web/site-{k % SITES}", goal="find it", start="/", template_id=f"form-{k}")
        yield Trajectory(
            task,
            ordinal,
            ordinal,
            Budget(),
            _turns(ordinal % BATCH),
            StopReason.ANSWERED,
            "red",
            1.0,
            True,
            group=ordinal,
            iteration=ordinal // BATCH,
        )


@cache
def _turns(seed: int) -> list[Turn]:
    """Turns whose prompts keep all that was before."""
    rng, turns, prompt = stream(seed, "bench"), [], []
    for _ in range(TURNS):
        page, said = (rng.choices(range(VOCABULARY), k=size) for size in (PAGE_TOKENS, SAID_TOKENS))
        prompt = prompt + page
        logprobs, words = [-rng.random() for _ in said], " ".join(f"w{i}" for i in page)
        turns.append(Turn(prompt, said, logprobs, [0] * len(said), words, "click [1]", "click [1]"))
        prompt = prompt + said
    return turns


BENCHMARK = Benchmark(
    name="store",
    question="What do opening, appending to and sampling from a run's history cost, and what memory does it take?",
    equal=(
        f"the file: trajectories of {TURNS} turns, {TURNS * (PAGE_TOKENS + SAID_TOKENS)} tokens, {TASKS:,} tasks, all "
        "admitted",
        f"batches of {BATCH}, on the disk when they are appended",
        f"the {REPLAY.keep} trajectories that are drawn, and all their turns in memory",
        "a file that the system holds in its memory",
    ),
    limits=(
        "JSON, in appending and in reading the trajectories that are drawn; a draw is a pass over all records in "
        "Python, with a random number each; a record is a Python object."
    ),
    measure=measure,
)

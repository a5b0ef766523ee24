"""The scheduler on a virtual clock: how much of what is possible the servers sample, by the bound on staleness and by
how many episodes are under way for each that can be live at once, and what the scheduler itself costs a turn and an
episode.

What always holds: each size is measured in a process of its own; a round is another seed; the scheduler's cost is
processor time, with that of the simulated servers and environments in it, so it is less than it says.
"""

import dataclasses
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from longstride.bench.base import Benchmark, Progress, Quantity, in_turn
from longstride.core.errors import ConfigError, RunError
from longstride.rollout.simulated import Spread, Workload, simulate

UNDER_WAY = (1.5, 4, 8)
"""Episodes that may be played, of this iteration and of those ahead, for each place: behind stragglers others wait."""
AHEAD = (0, 1, 4)
"""Bounds on staleness."""
PLACES = ((16, 1), (64, 1), (1024, 8))
"""Places and servers other than 256 and 2, with four under way a place and one iteration ahead."""
COSTS = ((16, 1), (256, 2), (1024, 8), (10_000, 64), (100_000, 512))
"""The same, where costs are."""
SHORT = Spread(1.5, 0.7, 10)
"""Turns of an episode where costs are measured."""
STORM: dict[str, Any] = {"hours": 0.5, "crashes": 0.002}
"""A server fails every half hour, and an environment in one step of five hundred."""
GOAL, CHEAP = 0.9, 500.0
"""Of the bound; microseconds a turn: a hundredth of a turn of 50 ms."""


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Quantity], dict[str, str]]:
    """The rows; there is no peer.

    Raises:
        ConfigError: one was given.
        RunError: trained episodes are not as long as started ones.
    """
    if peer is not None:
        raise ConfigError("the scheduler is measured alone; leave --peer out")
    sides: dict[str, Callable[[int], dict[str, Any]]] = {}
    for ahead in AHEAD:
        for ratio in UNDER_WAY:
            name = f"{ahead} ahead, {ratio} under way a place"
            sides[name] = partial(_in_a_process, _workload(256, 2, ahead, ratio))
    for places, servers in PLACES:
        name = f"1 ahead, 4 under way a place, {places:,} places"
        sides[name] = partial(_in_a_process, _workload(places, servers, 1, 4))
    sides["4 ahead, 4 under way a place, failures"] = partial(_in_a_process, _workload(256, 2, 4, 4, **STORM))
    rows = []
    for name, seen in in_turn(sides, rounds, progress).items():
        goal = GOAL if name == "1 ahead, 8 under way a place" else None
        rows.append(Quantity(f"{name}: utilisation", "of the bound", seen["utilisation"], None, "", True, goal))
        if "failures" in name:
            rows.append(Quantity(f"{name}: trained length against started", "share", 1 + seen["bias"]))
        elif seen["bias"].any():
            raise RunError(f"{name}: trained episodes are not as long as started ones; nothing was measured")
    sides = {f"{n:,}": partial(_in_a_process, Workload(n, k, 1, None, 1, turns=SHORT)) for n, k in COSTS}
    for name, seen in in_turn(sides, rounds, progress).items():
        rows.append(Quantity(f"{name} in flight: cost of a turn", "us", seen["microseconds"], goal=CHEAP))
        rows.append(Quantity(f"{name} in flight: memory", "kB an episode", seen["memory"]))
    return rows, {}


def _workload(places: int, servers: int, ahead: int, ratio: float, **more: Any) -> Workload:
    episodes = round(ratio * places / (ahead + 1))
    return Workload(places, servers, ahead, episodes, 4 * ahead + 6, **more)


def _in_a_process(workload: Workload, k: int) -> dict[str, Any]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_simulated, dataclasses.replace(workload, seed=k)).result()


def _simulated(workload: Workload) -> dict[str, Any]:
    before, began = _peak(), time.process_time()
    report = simulate(workload)
    spent = time.process_time() - began
    return {
        "utilisation": report.utilisation,
        "bias": report.bias,
        "microseconds": 1e6 * spent / report.turns,
        "memory": (_peak() - before) / workload.places,
    }


def _peak() -> int:
    """Kilobytes of this process in memory at most so far: Linux's /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


BENCHMARK = Benchmark(
    name="scheduler",
    question="How much of what is possible do servers sample, by episodes under way a place, and what does the "
    "scheduler itself cost, by episodes in flight?",
    equal=(
        "scheduler, pool, player and the sharing of servers are those of a run, on a virtual clock",
        "a pass takes what our engine took with 0.6 billion parameters on one H100",
        "turns of an episode, tokens of a turn and latencies of environments are lognormal (assumed), with stragglers "
        "of five times the median and more",
        "256 places on two servers where nothing else is said; the bound: all places filled at every moment, and "
        "evenly spread",
    ),
    limits=(
        "an iteration is complete when its longest episode has ended, which others must hide, and an update waits "
        "until what is under way has its turn. A turn costs some tens of steps of Python's event loop, whatever is in "
        "flight."
    ),
    measure=measure,
    how_to_make_peer="",
    rounds=2,
)

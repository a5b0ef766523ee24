"""The scheduler on a virtual clock: how much of what is possible the servers sample, by episodes in flight and
staleness, and what the scheduler itself costs a turn and an episode.

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

IN_FLIGHT = ((16, 1), (64, 1), (256, 2), (1024, 8))
"""Episodes in flight, and servers, where utilisation is measured."""
AHEAD = (0, 1, 4)
"""Bounds on staleness."""
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
    for places, servers in IN_FLIGHT:
        for ahead in AHEAD:
            # as many are under way as there are places, and half as many again behind stragglers
            workload = Workload(places, servers, ahead, max(8, 3 * places // (2 * (ahead + 1))), 4 * ahead + 6)
            sides[f"{places:,} in flight, {ahead} ahead"] = partial(_in_a_process, workload)
    rough = Workload(256, 2, 4, 76, 22, **STORM)
    sides["256 in flight, 4 ahead, servers and environments fail"] = partial(_in_a_process, rough)
    rows = []
    for name, seen in in_turn(sides, rounds, progress).items():
        rows.append(Quantity(f"{name}: utilisation", "of the bound", seen["utilisation"], higher_is_better=True))
        if "fail" in name:
            rows.append(Quantity(f"{name}: trained length against started", "share", 1 + seen["bias"]))
        elif seen["bias"].any():
            raise RunError(f"{name}: trained episodes are not as long as started ones; nothing was measured")
    sides = {f"{n:,}": partial(_in_a_process, Workload(n, k, 1, None, 1, turns=SHORT)) for n, k in COSTS}
    for name, seen in in_turn(sides, rounds, progress).items():
        rows.append(Quantity(f"{name} in flight: cost of a turn", "us", seen["microseconds"], goal=CHEAP))
        rows.append(Quantity(f"{name} in flight: memory", "kB an episode", seen["memory"]))
    return rows, {}


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
    question="How much of what is possible do servers sample, and what does the scheduler itself cost, by episodes in "
    "flight?",
    equal=(
        "scheduler, pool, player and the sharing of servers are those of a run, on a virtual clock",
        "a pass takes what our engine took with 0.6 billion parameters on one H100",
        "turns of an episode, tokens of a turn and latencies of environments are lognormal (assumed), with stragglers "
        "of five times the median and more",
        "the bound: all places filled at every moment, and evenly spread",
    ),
    limits=(
        "an iteration is complete when its longest episode has ended, and an update waits until what is under way has "
        "its turn. A turn costs some tens of steps of Python's event loop, whatever is in flight."
    ),
    measure=measure,
    how_to_make_peer="",
    rounds=2,
)

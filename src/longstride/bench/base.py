"""What benchmarks share: rows, rounds in which all sides take turns, ratios with intervals, and what is kept of them.

What always holds: a ratio is above 1 where we are better, and is the geometric mean over pairs that were measured in
the same round, so what slows the machine down for a while slows both sides; a goal is `met` or `missed` only where the
whole 95 % interval says so, and `undecided` otherwise; a row that was not measured is left out, never filled in.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longstride import __version__
from longstride.core.provenance import commit
from longstride.stats import mean_interval, paired_difference, paired_difference_clustered

Judgement = Literal["met", "missed", "undecided", ""]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Quantity:
    """A line of a benchmark: one quantity, of ours alone or against a peer."""

    name: str
    unit: str
    ours: ArrayLike
    """(rounds,), or (rounds, tasks) where each task is compared with itself."""
    peer: ArrayLike | None = None
    """Of the same shape, entry by entry from the same round."""
    against: str = ""
    """What the peer is, with its version."""
    higher_is_better: bool = False
    goal: float | None = None
    """What the ratio must reach; without a peer, what the value must reach (or, where lower is better, not pass)."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: what it asks, and how that is measured."""

    name: str
    question: str
    equal: Sequence[str]
    """What was the same on all sides."""
    limits: str
    """What limits us now."""
    measure: Callable[[str | None, int, Progress], tuple[list[Quantity], dict[str, str]]]
    """From the peer's Python (None: ours alone, or a peer in our own environment), the number of rounds and a listener
    to how far it is: the rows, and versions by name."""
    how_to_make_peer: str = ""
    """The commands that make the peer's environment; none where it is in ours and always measured."""
    rounds: int = 5
    """Of all sides, unless another number is asked for."""
    short: "Benchmark | None" = None
    """The same in minutes, where it takes hours (`--short`)."""


def in_turn(
    sides: Mapping[str, Callable[[int], Mapping[str, Any]]], rounds: int, progress: Progress, or_fewer: bool = False
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Measures all sides in every round, each round beginning with another one.

    Args:
        sides: by name what measures one round (its number is given) and answers quantities by name.
        rounds: how many.
        progress: shown what is being measured.
        or_fewer: whether an interrupt after the first round ends it with the whole rounds.

    Returns:
        By side and quantity an array whose first axis is the round.
    """
    names, seen, whole = list(sides), {name: [] for name in sides}, 0
    try:
        for k in range(rounds):
            for name in names[k % len(names) :] + names[: k % len(names)]:
                progress(f"round {k + 1} of {rounds}: {name}")
                seen[name].append(sides[name](k))
            whole += 1
    except KeyboardInterrupt:
        if not (or_fewer and whole):
            raise
        seen = {name: by_round[:whole] for name, by_round in seen.items()}
    return {name: {q: np.array([r[q] for r in by_round]) for q in by_round[0]} for name, by_round in seen.items()}


def judged(row: Quantity) -> dict[str, Any]:
    """A row as it is kept: `name`, `unit`, `ours` and, with a peer, `peer` (medians), `against`; `value` (the ratio, or
    ours) with `lo` and `hi` (95 %; None from a single round), `goal`, `verdict`, `samples`."""
    ours = np.asarray(row.ours, float)
    kept: dict[str, Any] = {"name": row.name, "unit": row.unit, "ours": float(np.median(ours))}
    lo = hi = None
    if row.peer is None:
        value = float(ours.mean())
        by_round = ours.reshape(len(ours), -1).mean(1)
        if len(ours) > 1:
            lo, hi = mean_interval(by_round.tolist(), seed=0)
    else:
        peer = np.asarray(row.peer, float)
        kept |= {"peer": float(np.median(peer)), "against": row.against}
        better, worse = (ours, peer) if row.higher_is_better else (peer, ours)
        a, b = np.log(better), np.log(worse)
        value = exp(float((a - b).mean()))
        if len(ours) > 1:
            effect = paired_difference_clustered(a, b, seed=0) if a.ndim == 2 else paired_difference(a, b, seed=0)  # pyright: ignore[reportArgumentType]
            lo, hi = exp(effect.lo), exp(effect.hi)
    at_least = row.peer is not None or row.higher_is_better
    kept |= {"value": value, "lo": lo, "hi": hi, "goal": row.goal, "at_least": at_least}
    return kept | {"verdict": _verdict(lo, hi, row.goal, at_least), "samples": _samples(row)}


def _verdict(lo: float | None, hi: float | None, goal: float | None, at_least: bool) -> Judgement:
    if goal is None or lo is None or hi is None:
        return "" if goal is None else "undecided"
    if at_least:
        return "met" if lo >= goal else "missed" if hi < goal else "undecided"
    return "met" if hi <= goal else "missed" if lo > goal else "undecided"


def _samples(row: Quantity) -> dict[str, Any]:
    sides = {"ours": row.ours} | ({} if row.peer is None else {"peer": row.peer})
    return {side: np.asarray(values, float).round(6).tolist() for side, values in sides.items()}


def run_benchmark(
    benchmark: Benchmark, folder: Path, peer: str | None, rounds: int, progress: Progress
) -> dict[str, Any]:
    """Measures a benchmark and keeps it.

    Args:
        benchmark: what is measured.
        folder: where `NAME.json` and `NAME.md` are written.
        peer: the Python of the peer's environment; None measures ours alone.
        rounds: how often every side is measured; some benchmarks keep fewer when they are interrupted.
        progress: shown how far it is.

    Returns:
        What `NAME.json` holds: `name`, `question`, `equal`, `limits`, `rows` (see `judged`), `versions`, `machine`,
        `rounds`, `commit`, `command`, `seconds`.
    """
    began = time.monotonic()
    rows, versions = benchmark.measure(peer, rounds, progress)
    rounds = max((len(np.asarray(row.ours)) for row in rows), default=rounds)
    result = {
        "name": benchmark.name,
        "question": benchmark.question,
        "equal": list(benchmark.equal),
        "limits": benchmark.limits,
        "rows": [judged(row) for row in rows],
        "versions": {"longstride": __version__, "python": platform.python_version()} | versions,
        "machine": f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}, {platform.system()}",
        "rounds": rounds,
        "commit": commit(),
        "command": f"longstride bench {benchmark.name.replace('-short', ' --short')} --rounds {rounds}"
        + (" --peer PYTHON" if peer else ""),
        "seconds": round(time.monotonic() - began, 1),
    }
    folder.mkdir(parents=True, exist_ok=True)
    text = f"# {benchmark.name}\n\n{benchmark.question}\n\n{table(result)}"
    (folder / f"{benchmark.name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (folder / f"{benchmark.name}.md").write_text(text, encoding="utf-8")
    return result


def table(result: Mapping[str, Any]) -> str:
    """The rows, and what they rest on, in Markdown."""
    lines = ["| | ours | peer | ratio or value | 95 % | wanted | |", "|---|---|---|---|---|---|---|"]
    for row in result["rows"]:
        value = f"{_number(row['value'])}{' x' if 'peer' in row else ''}"
        peer = f"{_number(row['peer'])} ({row['against']})" if "peer" in row else ""
        interval = "" if row["lo"] is None else f"{_number(row['lo'])} to {_number(row['hi'])}"
        goal = "" if row["goal"] is None else f"{'>=' if row['at_least'] else '<='} {_number(row['goal'])}"
        unit = f" ({row['unit']})" if row["unit"] else ""
        cells = [row["name"] + unit, _number(row["ours"]), peer, value, interval, goal, row["verdict"]]
        lines.append(f"| {' | '.join(cells)} |")
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    lines += ["", f"Ours and peer are medians of {result['rounds']} rounds, in which all sides took turns."]
    lines += ["", f"Equal on all sides: {'; '.join(result['equal'])}.", "", f"What limits us now: {result['limits']}"]
    lines += ["", f"{result['machine']}; {versions}; commit {result['commit']}; `{result['command']}`."]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

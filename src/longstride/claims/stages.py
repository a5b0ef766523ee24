"""What a claim takes: the runs of its tuning, of its pilot and of its own seeds, before any of them is begun."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, prod
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Literal

from longstride.claims.claim import Claim, nested
from longstride.claims.curves import check_evaluated
from longstride.claims.tuning import all_axes, check_seeds, tuning_run
from longstride.run.experiment import Experiment
from longstride.run.extrapolation import Extrapolation
from longstride.run.folder import read_rows
from longstride.run.listener import Silent

Stage = Literal["tuning", "pilot", "seeds"]


@dataclass(frozen=True, slots=True)
class Load:
    """The runs of a stage."""

    runs: int
    """How many there are, without those that an earlier stage has made."""
    iterations: int
    """Of all of them together."""
    evaluations: int
    """Of all of them together, each under all of its strategies; 0 where an answer is computed."""


def stages(claim: Claim) -> Mapping[Stage, Load]:
    """By stage, what it takes: nothing of tuning and pilot where there are no tuning seeds.

    Raises:
        ConfigError: no arm has a setting of the grid; an arm refuses a value of it, what a seed draws, or what it has
            otherwise while it is tuned; one is evaluated too seldom to be read at equal cost.
    """
    found = all_axes(claim)
    for arm, run in claim.arms.items():
        for key, values in found[arm].items():
            for value in values:
                run.replace(**nested({key: value}))
    check_seeds(claim)
    check_evaluated(claim)
    seeds, tries = len(claim.tuning_seeds), {arm: prod(map(len, of.values())) if of else 0 for arm, of in found.items()}
    # where tuning is shorter, a side goes on at its full length with the neighbours of its best; of longer ways nothing
    # is known beforehand
    beside = {arm: sum(min(2, len(v) - 1) for v in of.values()) * (arm in claim.sides) for arm, of in found.items()}
    short = {arm: tuning_run(claim, arm, {}, claim.tuning_seeds[0], whole=False) for arm in claim.arms if seeds}
    return {
        "tuning": _load(short, {arm: seeds * n for arm, n in tries.items()}),
        # an arm that is tuned at its full length has its pilot among the runs of its tuning
        "pilot": _load(
            claim.arms, {arm: seeds * (1 + beside[arm]) for arm, n in tries.items() if claim.tuning or not n}
        ),
        "seeds": _load(claim.arms, dict.fromkeys(claim.arms, len(claim.seeds))),
    }


def _load(arms: Mapping[str, Experiment], runs: Mapping[str, int]) -> Load:
    """Of so many runs of each arm."""
    of = [(n, run) for arm, n in runs.items() if n for run in _all(arms[arm])]
    return Load(
        sum(runs.values()), sum(n * run.iterations for n, run in of), sum(n * _evaluations(run) for n, run in of)
    )


def _all(run: Experiment) -> list[Experiment]:
    """The runs that are made for a run: one, but for a law all that it is fitted to."""
    return [*run.variants.values()] * run.seeds if isinstance(run, Extrapolation) else [run]


def _evaluations(run: Experiment) -> int:
    """How often a run is evaluated, its start included."""
    if not (evaluation := run.as_data().get("evaluation")):
        return 0
    return evaluation.get("start", True) + ceil(run.iterations / evaluation["every"])


def hours(claim: Claim) -> float:
    """About how many hours of a core all stages take: one iteration of each side of what is expected is trained, in a
    folder that is gone afterwards; of a problem whose answer is known the whole run.

    Raises:
        ConfigError: see `stages`.
        LongstrideError: an arm cannot be trained.
    """
    loads = stages(claim).values()
    once, each, evaluation = map(sum, zip(*(_seconds(claim, arm) for arm in claim.sides), strict=True))
    seconds = sum(load.runs * once + load.iterations * each + load.evaluations * evaluation for load in loads)
    return seconds / len(claim.sides) / 3600


def _seconds(claim: Claim, arm: str) -> tuple[float, float, float]:
    """Processor's seconds of what a run of an arm does once, of an iteration and of an evaluation: 0 for these two
    where the whole is run."""
    runs = _all(claim.arms[arm])
    run = _once(runs[0]).replace(seed=(*claim.tuning_seeds, *claim.seeds)[0])
    with TemporaryDirectory() as folder:
        start, began = sum(os.times()[:4]), time.perf_counter()  # with those of the processes that it has begun
        run.train(Path(folder) / "run", Silent())
        took, lasted = sum(os.times()[:4]) - start, time.perf_counter() - began
        rows = [row for row in read_rows(Path(folder) / "run" / "metrics.jsonl") if "seconds" in row]
    spans = [(b["kind"], b["seconds"] - a["seconds"]) for a, b in pairwise(rows)]
    training = [seconds for kind, seconds in spans if kind == "train"]
    if not training:
        return len(runs) * took, 0.0, 0.0
    last = max(k for k, (kind, _) in enumerate(spans) if kind == "train")
    evaluation = sum(seconds for kind, seconds in spans[last + 1 :] if kind == "eval")
    speed = took / lasted
    once = max(0.0, lasted - sum(training) - _evaluations(run) * evaluation)
    return len(runs) * speed * once, speed * fmean(training), speed * evaluation


def _once(run: Experiment) -> Experiment:
    """A run of one iteration, or of one of each of its phases; all of one that takes seconds and has no such rows."""
    parts = run.as_data()
    if "problem" in parts:
        return run
    if "phases" in parts:
        return run.replace(phases={str(k): {"iterations": 1} for k in range(len(parts["phases"]))})
    return run.replace(iterations=1)

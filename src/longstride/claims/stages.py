"""What a claim takes: the runs of its tuning, of its pilot and of its own seeds, before any of them is begun."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Literal

from longstride.claims.claim import Claim, nested
from longstride.claims.curves import check_evaluated
from longstride.claims.tuning import all_axes, check_seeds
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
    # an arm that is tuned at its full length has its pilot among the runs of its tuning
    fresh = [arm for arm, n in tries.items() if claim.tuning or not n]
    short = {arm: run.replace(**nested(claim.tuning)).iterations for arm, run in claim.arms.items()}
    long = {arm: run.iterations for arm, run in claim.arms.items()}
    return {
        "tuning": Load(seeds * sum(tries.values()), seeds * sum(n * short[arm] for arm, n in tries.items())),
        "pilot": Load(seeds * len(fresh), seeds * sum(long[arm] for arm in fresh)),
        "seeds": Load(len(claim.seeds) * len(long), len(claim.seeds) * sum(long.values())),
    }


def hours(claim: Claim) -> float:
    """About how many hours of a core all stages take: one iteration of each side of what is expected is trained, in a
    folder that is gone afterwards; of a problem whose answer is known the whole run. Evaluations between the first and
    the last are left out.

    Raises:
        ConfigError: see `stages`.
        LongstrideError: an arm cannot be trained.
    """
    loads = stages(claim).values()
    sides = dict.fromkeys(side.partition("@")[0] for of in claim.expected.parsed for side in (of.better, of.worse))
    once, each = map(sum, zip(*(_seconds(claim, arm) for arm in sides), strict=True))
    runs, iterations = sum(load.runs for load in loads), sum(load.iterations for load in loads)
    return (runs * once + iterations * each) / len(sides) / 3600


def _seconds(claim: Claim, arm: str) -> tuple[float, float]:
    """Processor's seconds of a run of an arm without its iterations, and of one iteration: 0 where the whole is run."""
    whole = claim.arms[arm]
    times, run = (len(whole.variants) * whole.seeds, whole.run) if isinstance(whole, Extrapolation) else (1, whole)
    run = _once(run).replace(seed=(*claim.tuning_seeds, *claim.seeds)[0])
    with TemporaryDirectory() as folder:
        start, began = sum(os.times()[:4]), time.perf_counter()  # with those of the processes that it has begun
        run.train(Path(folder) / "run", Silent())
        took, lasted = times * (sum(os.times()[:4]) - start), time.perf_counter() - began
        rows = [row for row in read_rows(Path(folder) / "run" / "metrics.jsonl") if "seconds" in row]
    training = [b["seconds"] - a["seconds"] for a, b in pairwise(rows) if b["kind"] == "train"]
    speed = took / lasted
    return took - speed * sum(training), speed * fmean(training or [0.0])


def _once(run: Experiment) -> Experiment:
    """A run of one iteration, or of one of each of its phases; all of one that takes seconds and has no such rows."""
    parts = run.as_data()
    if "problem" in parts:
        return run
    if "phases" in parts:
        return run.replace(phases={str(k): {"iterations": 1} for k in range(len(parts["phases"]))})
    return run.replace(iterations=1)

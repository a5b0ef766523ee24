"""The pilot of a claim: how many seeds its margin takes, from runs on tuning seeds, before its own are spent.

What always holds: only seeds are used that decide nothing. A claim has enough seeds where four of five repetitions of
it would be decided if the truth were twice the margin, or nothing: both lie one margin away from what decides.
"""

from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from longstride.claims.claim import Claim
from longstride.claims.curves import all_curves, at_equal_cost, costs_differ, paired_values
from longstride.claims.judging import judge
from longstride.claims.tuning import Tuned, tuning_folder, tuning_run
from longstride.core.errors import ConfigError
from longstride.run.listener import Listener
from longstride.run.many import train_all
from longstride.stats.ordering import FEWEST

POWER = 0.8
"""How often a claim is to be decided."""
MOST = 10_000
"""Seeds beyond which no number is given."""


def check_pilot(claim: Claim) -> None:
    """Raises: ConfigError: fewer than two tuning seeds, or a relation without a margin."""
    relation, text = claim.expected.parsed[0], claim.expected.relations[0]
    if len(claim.tuning_seeds) < 2:
        raise ConfigError(f"a pilot needs two tuning_seeds or more, got {list(claim.tuning_seeds)}")
    if not relation.gap:
        raise ConfigError(f"{text!r} has no margin, and without one no number of seeds is enough; add `by GAP`")


def run_pilot(claim: Claim, tuned: Tuned, home: Path, watch: Callable[[str], Listener], jobs: int) -> dict[str, Any]:
    """Runs every arm at its best on the tuning seeds, where that has not been run yet.

    Returns:
        `relation` (the first that is expected), `seeds`, `mean` and `sd` of its difference over them, `costs_differ`
        (share; where the claim names a cost), `needed` (seeds; None above `MOST`), `claimed` (seeds of the claim),
        `seconds` of a seed with all arms, `void` (by control that could not fail on these seeds, why; where there is
        one).

    Raises:
        ConfigError: see `check_pilot`; a measure that none has.
        RunError: see `Experiment.train`.
    """
    check_pilot(claim)
    relation, text = claim.expected.parsed[0], claim.expected.relations[0]
    runs = {}
    for seed in claim.tuning_seeds:
        for arm in claim.arms:
            changes = tuned[arm]["chosen"]
            place = tuning_folder(claim, home, arm, changes, seed, whole=True)
            runs[place] = arm, tuning_run(claim, arm, changes, seed, whole=True)
    train_all({place: run for place, (_, run) in runs.items()}, lambda place: watch(place.name), jobs)
    curves = all_curves({place: arm for place, (arm, _) in runs.items()}, claim)
    measure = relation.measure or claim.measure
    values = (
        at_equal_cost(relation, measure, claim.cost, curves) if claim.equal_cost else paired_values(curves, measure)
    )
    differences_ST = values[relation.better] - values[relation.worse]
    judged = judge(claim, curves, tuned, claim.tuning_seeds)
    controls = judged["control_effects"]
    void = {e["relation"]: e["void"] for e in controls if "void" in e}
    if "void" in judged.get("dose", {}):
        void["dose"] = judged["dose"]["void"]
    return {
        "relation": text,
        "seeds": list(claim.tuning_seeds),
        "mean": float(differences_ST.mean()),
        "sd": float(differences_ST.mean(axis=1).std(ddof=1)),
        **({"costs_differ": costs_differ(relation, claim.cost, curves)} if claim.cost else {}),
        "needed": seeds_needed(differences_ST, relation.gap),
        "claimed": len(claim.seeds),
        "seconds": sum(curve[-1]["seconds"] for arm in claim.arms for curve in curves[arm]) / len(claim.tuning_seeds),
        **({"void": void} if void else {}),
    }


def seeds_needed(differences_ST: np.ndarray, margin: float) -> int | None:
    """Seeds with which a difference one margin away from the margin is decided with `POWER`, by the intervals of
    `stats.bootstrap`, whose scatter of tasks within seeds counts twice. Two or three seeds say little of how much seeds
    differ, and no less than their tasks do: it is at least that. Fewer than `stats.ordering.FEWEST` decide nothing.

    Args:
        differences_ST: of pilot runs, (seeds, tasks).
        margin: above 0.

    Returns:
        None: more than `MOST`.
    """
    S, T = differences_ST.shape
    of_tasks = float(differences_ST.var(axis=1, ddof=1).mean()) / T if T > 1 else 0.0
    of_seeds = max(float(differences_ST.mean(axis=1).var(ddof=1)), of_tasks)
    for n in range(FEWEST, MOST + 1):
        half = stdtrit(n - 1, 0.975) * sqrt((of_seeds + of_tasks) / n)
        if half + ndtri(POWER) * sqrt(of_seeds / n) <= margin:
            return n
    return None


def told(pilot: dict[str, Any]) -> str:
    """What a pilot says, in a line."""
    n = pilot["needed"]
    seeds = f"more than {MOST:,} seeds are" if n is None else f"{n} seeds are"
    hours = "" if n is None else f", {n * pilot['seconds'] / 3600:.2f} h"
    costs = f"; costs differ by {100 * pilot['costs_differ']:.1f} %" if "costs_differ" in pilot else ""
    void = "".join(f"; the control {control} is void: {why}" for control, why in pilot.get("void", {}).items())
    return (
        f"{pilot['relation']}: {pilot['mean']:+.3f}, seeds differ by {pilot['sd']:.3f} (of {len(pilot['seeds'])}); for "
        f"its margin {seeds} needed{hours}, and the claim has {pilot['claimed']}{costs}{void}"
    )

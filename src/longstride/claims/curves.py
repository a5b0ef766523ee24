"""What the runs of a claim came to: evaluations along the way, final values paired between arms, and what was spent.

What always holds: a task that failed anywhere is left out everywhere, so pairs stay pairs.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from longstride.claims.claim import SPENT, TRAINING, Claim, setting
from longstride.core.errors import ConfigError, RunError
from longstride.rollout.summary import HORIZONS
from longstride.run.folder import read_rows
from longstride.stats import Relation, paired_difference

GAINED = "gained_"
"""Before the name of a measure: what it has become more by since training began."""
Point = dict[str, Any]
"""An evaluation: what was spent until then, and by measure the values of all tasks."""
Curves = dict[str, list[list[Point]]]
"""Evaluations of each side of a relation, by seed."""


def read_curves(run: Path, arm: str, measures: Sequence[str]) -> dict[str, list[Point]]:
    """The policy's evaluations in a finished run, the warm start's first: under the arm's name for the first strategy,
    as `ARM@STRATEGY` for every other one. `values` has what of the measures there is, by task.

    Raises:
        RunError: the rows of the run are damaged.
    """
    wanted = dict.fromkeys(m.removeprefix(GAINED) for m in measures)
    try:
        curves: dict[str, list[Point]] = {}
        tokens, slots, first = 0, 0, None
        for row in read_rows(run / "metrics.jsonl"):
            if row["kind"] == "train":
                tokens += row["summary"].get("sampled_tokens", 0)
                slots += row["summary"].get("slot_steps", 0)
                tokens += row["summary"].get("judge_usage", {}).get("sampled", 0)
            if row["kind"] != "eval" or row["policy"] not in ("warm_start", "agent"):
                continue
            first = first or row["strategy"]
            curves.setdefault(arm if row["strategy"] == first else f"{arm}@{row['strategy']}", []).append(
                {
                    "strategy": row["strategy"],
                    "iterations": row["iteration"],
                    "env_steps": row["total_env_steps"],
                    "sampled_tokens": tokens,
                    "slot_steps": slots,
                    "seconds": row["seconds"],
                    "horizons": {name: row["summary"][name] for name in HORIZONS if name in row.get("summary", ())},
                    "values": {m: row["measures"][m] for m in wanted if m in row["measures"]},
                }
            )
        for curve in curves.values():
            for measure in set(measures) - set(wanted):
                _add_gained(curve, measure)
        return curves
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise RunError(
            f"{run / 'metrics.jsonl'} cannot be read: {type(e).__name__}: {e}; delete {run} to run it anew"
        ) from e


def _add_gained(curve: list[Point], measure: str) -> None:
    """Adds what was gained since the start of a curve, where that was evaluated and has the measure."""
    of = measure.removeprefix(GAINED)
    first = [] if curve[0]["iterations"] else list(curve[0]["values"].get(of, ()))
    for point in curve:
        if first and of in point["values"]:
            pairs = zip(point["values"][of], first, strict=True)
            point["values"][measure] = [None if None in (now, then) else now - then for now, then in pairs]


def all_curves(runs: Mapping[Path, str], claim: Claim) -> Curves:
    """The curves of finished runs of a claim, given by folder with the names of their arms: of one arm in the order of
    its seeds.

    Raises:
        ConfigError: the cost of its ways is not measured.
        RunError: the rows of a run are damaged.
    """
    found: Curves = {}
    for run, arm in runs.items():
        for side, curve in read_curves(run, arm, claim.measures).items():
            found.setdefault(side, []).append(curve)
    return found | {
        f"{arm}@{way}": _way(claim, arm, strategies, found)
        for arm, experiment in claim.arms.items()
        for way, strategies in claim.ways.items()
        if set(strategies) <= set(experiment.strategies)
    }


def _way(claim: Claim, arm: str, strategies: Sequence[str], curves: Curves) -> list[list[Point]]:
    """By seed, where each of some strategies ended, in the order of what they cost."""
    of_arm = [by_seed for side, by_seed in curves.items() if side.partition("@")[0] == arm]
    ends = {by_seed[0][-1]["strategy"]: [curve[-1] for curve in by_seed] for by_seed in of_arm}
    by_seed = zip(*(ends[name] for name in strategies), strict=True)
    return [sorted(points, key=lambda point: cost_of(point, claim.cost)) for points in by_seed]


def value(point: Point, measure: str) -> float:
    """The mean over tasks of a measure at a point of a curve.

    Raises:
        ConfigError: it has no such measure.
        RunError: no task has a value.
    """
    if measure not in point["values"]:
        raise ConfigError(_no_measure(measure))
    if not (values := [v for v in point["values"][measure] if v is not None]):
        raise RunError(f"no task has {measure!r} after {point['iterations']} iterations; see `failed` in metrics.jsonl")
    return fmean(values)


def paired_values(curves: Curves, measure: str) -> dict[str, np.ndarray]:
    """Final values (seeds, tasks) by side that has the measure.

    Raises:
        ConfigError: none has.
        RunError: every task failed somewhere.
    """
    last = {
        side: [curve[-1]["values"][measure] for curve in by_seed]
        for side, by_seed in curves.items()
        if all(measure in point["values"] for curve in by_seed for point in curve)
    }
    if not last:
        raise ConfigError(_no_measure(measure))
    return dict(zip(last, _whole(list(last.values())), strict=True))


def _no_measure(measure: str) -> str:
    return f"no evaluation has the measure {measure!r}; take one of `measures` in a run's metrics.jsonl"


def _whole(sides: list[list[list[float | None]]]) -> list[np.ndarray]:
    """The values (seeds, tasks) of several sides, without the tasks that failed anywhere."""
    n = min(len(values) for by_seed in sides for values in by_seed)
    whole = [k for k in range(n) if all(v[k] is not None for by_seed in sides for v in by_seed)]
    if not whole:
        raise RunError("every held-out task failed in some run; see `failed` in their metrics.jsonl")
    return [np.array([[v[k] for k in whole] for v in by_seed], float) for by_seed in sides]


def cost_of(point: Point, cost: str) -> float:
    """What had been spent at a point of a curve.

    Raises:
        ConfigError: nothing of that name is measured.
    """
    return float(point[cost]) if cost in TRAINING else value(point, cost)


def costs_differ(relation: Relation, cost: str, curves: Curves) -> float:
    """By which share of the dearer side's cost the two sides of a relation differ in all, mean over seeds.

    Raises:
        ConfigError: neither side has spent anything of that name.
    """
    better, worse = (fmean(cost_of(curve[-1], cost) for curve in curves[side]) for side in relation[:2])
    if cost in TRAINING and not better and not worse:
        raise ConfigError(f"{cost} is not measured by these runs, so no costs can be compared; name another cost")
    return abs(better - worse) / max(better, worse, 1e-300)


def at_equal_cost(relation: Relation, measure: str, cost: str, curves: Curves) -> dict[str, np.ndarray]:
    """Values (seeds, tasks) of both sides where each has spent as much as the thriftier one of its seed in all, between
    the two evaluations next to it. A way to spend begins with a cost, and is read from there on.

    Raises:
        ConfigError: no such measure or cost, or one that falls; or the dearer side has no evaluation between the start
            of its training and that cost, or costs more wherever it was evaluated.
    """
    sides = {}
    for name, other in ((relation.better, relation.worse), (relation.worse, relation.better)):
        sides[name] = []
        for ours, theirs in zip(curves[name], curves[other], strict=True):
            budget = min(cost_of(ours[-1], cost), cost_of(theirs[-1], cost))
            at = [cost_of(point, cost) for point in ours]
            if at != sorted(at):
                raise ConfigError(
                    f"nothing can be read at equal {cost}: it falls from one evaluation of {name} to a later one"
                )
            if not budget or len(at) < 3 or budget < (at[0] or at[1]):
                raise ConfigError(
                    f"{name} cannot be read at {budget:,.0f} {cost}: its evaluations are at "
                    f"{', '.join(f'{x:,.0f}' for x in at)}; evaluate more often"
                )
            k = min(max(1, int(np.searchsorted(at, budget))), len(at) - 1)
            share = 1.0 if at[k] == at[k - 1] else (budget - at[k - 1]) / (at[k] - at[k - 1])
            pairs = zip(*(ours[i]["values"].get(measure) or [] for i in (k - 1, k)), strict=True)
            between = [None if None in (a, b) else a + share * (b - a) for a, b in pairs]
            if not between:
                raise ConfigError(_no_measure(measure))
            sides[name].append(between)
    return dict(zip(sides, _whole(list(sides.values())), strict=True))


def check_evaluated(claim: Claim) -> None:
    """Raises: ConfigError where a claim is to be read at equal cost, and a side of it has no evaluation between its
    start and its end; said before anything is run."""
    sides = [side.partition("@") for relation in claim.relations for side in relation[:2]]
    for arm in dict.fromkeys(arm for arm, _, way in sides if claim.equal_cost and way not in claim.ways):
        n, ours = claim.arms[arm].iterations, claim.arms[arm].as_data()
        every = setting(ours, "evaluation.every") or setting(ours, "every")
        if every and (setting(ours, "evaluation.start") is not False) + ceil(n / every) < 3:
            raise ConfigError(
                f"{arm} is to be read at equal {claim.cost}, between its evaluations, and has fewer than three: of {n} "
                f"iterations every {every}; evaluate more often"
            )


def matched(relations: Sequence[str], measure: str, curves: Curves) -> list[dict[str, Any]]:
    """The two sides of each relation at equal amounts of everything that all sides have spent some of, from the start
    on. Ways to spend at the test are left out: all their points are of the end of training."""
    return [
        _matched(text, measure, spent, curves)
        for text in relations
        for spent in SPENT
        if all(curve[-1][spent] for by_seed in curves.values() for curve in by_seed)
        and not any(curve[0]["iterations"] for side in Relation.of(text)[:2] for curve in curves[side])
    ]


def _matched(text: str, measure: str, spent: str, curves: Curves) -> dict[str, Any]:
    """The two sides compared where both have spent as much as the thriftier one in all (curves interpolated).

    An iteration of a long horizon costs more steps than one of a short horizon, and probes cost tokens: equal
    iterations are not equal work.
    """
    better, worse, _, named = Relation.of(text)
    budgets, ours, theirs = [], [], []
    for a, b in zip(curves[better], curves[worse], strict=True):
        budgets.append(min(a[-1][spent], b[-1][spent]))
        for curve, out in ((a, ours), (b, theirs)):
            out.append(
                float(np.interp(budgets[-1], [p[spent] for p in curve], [value(p, named or measure) for p in curve]))
            )
    e = paired_difference(ours, theirs, seed=0)
    return {
        "relation": text,
        "spent": spent,
        "budgets": budgets,
        "better": ours,
        "worse": theirs,
        "mean": e.mean,
        "lo": e.lo,
        "hi": e.hi,
    }

"""Controls that could fail: whether a control had room to show what it must not, and whether an effect rises with its
cause.

What always holds: a control is void where its arms run shorter than those of the effect, where its margin is larger,
where an arm of it stands at the floor or the ceiling, and where its arms are equal by algebra. What is void decides
nothing. A dose is void where both arms stand at the same end of the scale at each strength below the strongest.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from longstride.claims.claim import Claim
from longstride.stats import Judgement, Relation, paired_difference_clustered
from longstride.stats.ordering import FEWEST

EDGE = 0.05
"""Share of the scale at each end that is its floor, or its ceiling."""
LEVEL = 1e-4
"""Share of the scale by which arms that are not equal by algebra differ in some seed."""


def void(claim: Claim, relation: Relation, better_ST: np.ndarray, worse_ST: np.ndarray) -> str:
    """Why a control could not have failed; empty where it could.

    Args:
        claim: whose control it is.
        relation: that of the control.
        better_ST: what its first arm came to, (seeds, tasks).
        worse_ST: what the other did.
    """
    effect = claim.expected.parsed[0]
    ours, theirs = ([claim.arms[side.partition("@")[0]] for side in of[:2]] for of in (relation, effect))
    if min(arm.iterations for arm in ours) < min(arm.iterations for arm in theirs):
        return "its arms run shorter than those of the effect"
    measure = relation.measure or claim.measure
    if relation.gap > effect.gap and measure == (effect.measure or claim.measure):
        return f"its margin is larger than that of the effect, {effect.gap:g}"
    low, high = claim.scale
    at = [float(of.mean()) for of in (better_ST, worse_ST)]
    if not measure.startswith("gained_"):
        if min(at) < low or max(at) > high:
            return f"{measure} leaves the scale of the claim, {low:g} to {high:g}"
        if edge := _edge(min(at), claim.scale) or _edge(max(at), claim.scale):
            return f"an arm of it is at {edge}"
    if np.abs(better_ST.mean(1) - worse_ST.mean(1)).max() < LEVEL * (high - low):
        return "its arms are equal by algebra"
    return ""


def dose_void(claim: Claim, means: Sequence[tuple[float, float]]) -> str:
    """Why a dose is no control: where its cause is weaker, no effect could show; empty where one could.

    Args:
        claim: whose dose it is.
        means: of both arms, at each of the strengths of `claim.dose`.
    """
    ends = set[str]()
    for text, (better, worse) in list(zip(claim.dose, means, strict=True))[:-1]:
        measure = Relation.of(text).measure or claim.measure
        low, high = claim.scale
        inside = not measure.startswith("gained_") and low <= min(better, worse) <= max(better, worse) <= high
        end = _edge(better, claim.scale) if inside else ""
        if not end or _edge(worse, claim.scale) != end:
            return ""
        ends.add(end)
    return f"both arms stand at {' or '.join(sorted(ends))} wherever the cause is weaker, so no effect could show there"


def learns_nothing(design: Mapping[str, Any], tried: Sequence[Sequence[Any]]) -> str:
    """A warning where an arm is at the floor of the scale at every setting that was tried: what the effect is over may
    be a setting that is not in the grid. Empty where it is not, and where the lowest or another measure was sought.

    Args:
        design: of the claim (`Claim.design`).
        tried: changes and mean of each combination (`claims.tuning`).
    """
    if not tried or design.get("lower_is_better") or design.get("tuned_by"):
        return ""
    low = all(_edge(mean, design.get("scale", (0.0, 1.0))) == "the floor" for _, mean in tried)
    return "at the floor at each of them, so a setting that is not in the grid may be at fault" if low else ""


def _edge(value: float, scale: Sequence[float]) -> str:
    low, high = scale
    near = EDGE * (high - low)
    return "the floor" if value < low + near else "the ceiling" if value > high - near else ""


def rise(relations: Sequence[str], differences: Sequence[np.ndarray]) -> dict[str, Any]:
    """Whether an effect rises with its cause.

    Args:
        relations: at rising strengths of the cause.
        differences: of each, (seeds, tasks); where one has more tasks than another, seeds alone are pairs.

    Returns:
        `relations`, their mean differences (`means`), the last minus the first with its interval (`mean`, `lo`, `hi`),
        `verdict`: reproduced where that is surely above 0 and no step falls, not reproduced where it is surely not;
        fewer seeds than `stats.ordering.FEWEST` decide nothing.
    """
    means = [float(of.mean()) for of in differences]
    strongest, weakest = differences[-1], differences[0]
    if strongest.shape != weakest.shape:
        strongest, weakest = (of.mean(axis=1, keepdims=True) for of in (strongest, weakest))
    e = paired_difference_clustered(strongest, weakest, seed=0)
    rising = all(a <= b for a, b in pairwise(means))
    verdict: Judgement = "reproduced" if e.lo > 0 and rising else "not reproduced" if e.hi <= 0 else "undecided"
    if len(differences[0]) < FEWEST:
        verdict = "undecided"
    return {"relations": list(relations), "means": means, "mean": e.mean, "lo": e.lo, "hi": e.hi, "verdict": verdict}

"""Horizons of a policy: its success within a budget, the distance and the budget at which that is a half, and what
twice the budget will bring.

What always holds: three numbers are kept apart. *Goal distance* is the fewest actions that a task takes; an
*interaction budget* is how many actions its environment allows; an *effective horizon* is how many a policy takes. An
episode under a shorter budget is the beginning of the same episode, which is exact for a policy that is not told its
budget: so one evaluation has the success within every smaller one. The unit of a budget is the caller's: turns, or
sampled tokens.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longstride.core.seeds import derive
from longstride.scaling.logistic import chance, line, logistic
from longstride.stats.measures import wilson_interval

DRAWS = 400
"""Resamples of the tasks behind an interval."""
DISTANCE_EDGES = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""Between kinds of tasks under way, by log2 of the budget over the goal distance."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an episode."""

    length: float
    """What it took, in the unit of the budget."""
    success: bool
    cut: bool = False
    """Whether the budget ended it, so that a larger one would have let it go on."""
    distance: float | None = None
    """Goal distance of its task, where it is known."""


class Range(NamedTuple):
    """A distance or a budget with its 95 % interval. 0 says that it is below all that was measured, infinity that it is
    beyond."""

    value: float
    lo: float
    hi: float


class Within(NamedTuple):
    """Success within a budget."""

    budget: float
    success: float
    lo: float
    """95 % Wilson interval."""
    hi: float
    under_way: float
    """Share of the episodes that go on."""


@dataclass(frozen=True, slots=True)
class Doubling:
    """What twice the budget is expected to bring."""

    budget: float
    """Up to which was measured."""
    at: float
    """Twice that."""
    success: float
    """Within `budget`."""
    under_way: int
    """Episodes that `budget` cut: all others are what they will be."""
    tasks: int
    mean: float
    lo: float
    """95 % interval of what is measured when these very episodes go on."""
    hi: float

    @property
    def empty(self) -> bool:
        """Whether nothing was cut, so that there is nothing to predict."""
        return self.under_way == 0


def within(outcomes: Sequence[Outcome], budgets: Sequence[float]) -> list[Within]:
    """Success within each budget, none of them above that of the episodes."""
    found = []
    for b in budgets:
        done = sum(o.success and o.length <= b for o in outcomes)
        going = sum(o.length > b or o.cut and o.length >= b for o in outcomes)
        ends = wilson_interval(done, len(outcomes))
        found.append(Within(b, done / len(outcomes), *ends, going / len(outcomes)))
    return found


def budget_for(outcomes: Sequence[Outcome], share: float, seed: int) -> Range:
    """The smallest budget within which that share of the tasks is done, its interval by resampling the tasks."""
    took = np.array([o.length if o.success else math.inf for o in outcomes])
    rank = max(math.ceil(share * len(took) - 1e-9), 1) - 1
    drawn = np.sort(_resampled(len(took), seed, took), 1)[:, rank]
    lo, hi = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
    return Range(float(np.sort(took)[rank]), float(lo), float(hi))


def distance_at(outcomes: Sequence[Outcome], share: float, seed: int) -> Range | None:
    """The goal distance at which that share of the tasks is done: where log-odds that are linear in log2 of the
    distance cross it (Kwa et al., 2025, "Measuring AI Ability to Complete Long Tasks", arXiv 2503.14499, with minutes
    of people in place of actions). None where distances are unknown or all alike."""
    known = [o for o in outcomes if o.distance is not None]
    distances = np.array([o.distance for o in known], float)
    if len(np.unique(distances)) < 2:
        return None
    done = np.array([o.success for o in known])

    def crossing(rows: np.ndarray) -> float:
        height, slope = line(np.log2(distances[rows]).tolist(), done[rows].tolist())
        if slope >= 0:
            return math.inf if done[rows].mean() >= share else 0.0
        at = 2.0 ** min((math.log(share / (1 - share)) - height) / slope, 1000.0)
        return 0.0 if at < distances.min() else math.inf if at > distances.max() else at

    drawn = [crossing(rows) for rows in _resampled(len(known), seed)]
    lo, hi = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
    return Range(crossing(np.arange(len(known))), float(lo), float(hi))


def forecast(outcomes: Sequence[Outcome], budget: float, seed: int) -> Doubling:
    """Predicts success within twice the budget, for the episodes that go on where it cut them.

    Of all episodes that were under way at some b between a quarter and a half of the budget it is known whether they
    were done by 2 b. A logistic regression of that, in log2 b and in kinds of log2(b / distance) where distances are
    known, says for each episode that is under way at the budget how likely it is done by twice that. The interval has
    both: the uncertainty of the regression, by resampling tasks, and the chance of each episode.

    Args:
        outcomes: of episodes under `budget`.
        budget: in their unit, 2 or more.
        seed: of the resampling.
    """
    n, cut = len(outcomes), [o for o in outcomes if o.cut]
    done = sum(o.success for o in outcomes)
    if not cut:
        return Doubling(budget, 2 * budget, done / n, 0, n, done / n, done / n, done / n)
    kinds = all(o.distance is not None for o in outcomes)
    halves = np.unique(np.geomspace(budget / 4, budget // 2, 9).round().clip(1))
    rows = [
        (k, *_features(b, budget, o, kinds), o.success and o.length <= 2 * b)
        for b in halves
        for k, o in enumerate(outcomes)
        if o.length > b
    ]
    table = np.array(rows, float)
    task, design, came = table[:, 0].astype(int), table[:, 1:-1], table[:, -1]
    ahead = np.array([_features(budget, budget, o, kinds) for o in cut], float)
    ridge = np.array([0.05, 1.0] + [0.1] * (design.shape[1] - 2))
    rng = np.random.default_rng(derive(seed, "forecast"))
    totals = []
    for drawn in _resampled(n, seed):
        weights = np.bincount(drawn, minlength=n)[task] / len(halves)
        likely = chance(ahead @ logistic(design, came, ridge, weights))
        totals.append((done + (rng.random(len(cut)) < likely).sum()) / n)
    likely = chance(ahead @ logistic(design, came, ridge, np.full(len(task), 1 / len(halves))))
    lo, hi = np.quantile(totals, [0.025, 0.975], method="inverted_cdf")
    mean = (done + likely.sum()) / n
    return Doubling(budget, 2 * budget, done / n, len(cut), n, float(mean), float(min(lo, mean)), float(max(hi, mean)))


def _features(b: float, budget: float, o: Outcome, kinds: bool) -> list[float]:
    """Of an episode under way at b: a constant, doublings of b after half the budget, and which kind of task it is."""
    own = [1.0, math.log2(2 * b / budget)]
    if kinds and o.distance is not None:
        kind = int(np.searchsorted(DISTANCE_EDGES, math.log2(b / o.distance), side="right"))
        own += [float(kind == k) for k in range(len(DISTANCE_EDGES) + 1)]
    return own


def _resampled(n: int, seed: int, values: np.ndarray | None = None) -> np.ndarray:
    """[DRAWS, n] places of tasks, or values at them, drawn with replacement."""
    places = np.random.default_rng(derive(seed, "horizons")).integers(n, size=(DRAWS, n))
    return places if values is None else values[places]

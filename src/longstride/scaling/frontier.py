"""Which setting is best at which budget, and how a budget is split: from a fitted curve of each setting.

What always holds: a setting is judged by its fitted curve, and beyond its points by what that predicts; a split spends
no more than the budget. NumPy, no torch.

The procedure for settings is that of the IsoCompute playbook (see `papers.isocompute.exact`): of each setting only
the points are kept at which its curve breaks its own record, a rising sigmoid is fitted to them, and the upper envelope
over settings says which one is best at a budget.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from longstride.scaling.fitting import RESAMPLES, Fit, fit
from longstride.scaling.laws import FitError, Law, LogSigmoid, Sigmoid

MOST = 1_000_000
"""Attempts at which a plateau is looked for, and that are shared out."""
PLACES = 32
"""Budgets at which a frontier is read for a rule."""


@dataclass(frozen=True, eq=False)
class Frontier:
    """A curve for each setting, and their upper envelope."""

    fits: dict[float, Fit]

    def at(self, budget: float) -> dict[float, float]:
        """What every setting comes to at a budget."""
        return {setting: float(found.predict([budget]).mean[0]) for setting, found in self.fits.items()}

    def best(self, budget: float) -> float:
        """The setting that comes to most at a budget; of several, the smallest."""
        values = self.at(budget)
        return min(values, key=lambda setting: (-values[setting], setting))

    def steps(self, budgets: ArrayLike) -> list[tuple[float, float]]:
        """Where the best setting changes among ascending budgets: (the first of them, the setting)."""
        found: list[tuple[float, float]] = []
        for budget in np.asarray(budgets, float):
            if not found or self.best(budget) != found[-1][1]:
                found.append((float(budget), self.best(budget)))
        return found

    def rule(self, least: float, most: float, resamples: int = RESAMPLES) -> Fit:
        """The best setting by the budget, log setting a sigmoid in log budget, fitted to the frontier between two
        budgets (IsoCompute, figure 6). Its intervals are those of the steps, not of the runs' noise.

        Raises:
            FitError: a setting is no positive number.
        """
        budgets = np.geomspace(least, most, PLACES)
        return fit(LogSigmoid(), budgets, [self.best(b) for b in budgets], resamples=resamples)


def frontier(
    curves: Mapping[float, tuple[ArrayLike, ArrayLike]],
    law: Law | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Frontier:
    """Fits a rising curve to the records of each setting.

    Args:
        curves: by setting, amounts spent [n] and success [n].
        law: of a curve; a sigmoid if left out.
        seed: of the bootstrap.
        resamples: of the points of a curve.

    Raises:
        FitError: fewer than two settings, or one has too few records; it is named.
    """
    if len(curves) < 2:
        raise FitError(f"a frontier needs two settings or more, got {len(curves)}; sweep one")
    fits = {}
    for setting, (x, y) in sorted(curves.items()):
        try:
            fits[setting] = fit(law or Sigmoid(), *records(x, y), seed=seed, resamples=resamples)
        except FitError as e:
            raise FitError(f"setting {setting:g}: {e}") from e
    return Frontier(fits)


def records(x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The points, by x, at which y is larger than at every smaller x."""
    order = np.argsort(np.asarray(x, float), kind="stable")
    at, measured = np.asarray(x, float)[order], np.asarray(y, float)[order]
    kept = measured > np.concatenate([[-np.inf], np.maximum.accumulate(measured)[:-1]])
    return at[kept], measured[kept]


def split(curves: Mapping[str, Fit], budget: int, counts: Mapping[str, int] | None = None) -> dict[str, int]:
    """Shares attempts out among kinds of tasks so that the expected number of solved ones is largest: each further
    attempt goes where it adds most, which is best since coverage is concave in attempts. Where kinds have unequal
    numbers of tasks it is only nearly best: what is left may be too little for the kind whose turn it is.

    Args:
        curves: by kind of task, coverage by attempts a task.
        budget: attempts in all.
        counts: tasks of each kind, 1 each if left out. All tasks of a kind get the same number of attempts.

    Returns:
        Attempts a task by kind.

    Raises:
        FitError: the budget is too small for one attempt at one task of any kind, or above `MOST`.
    """
    if budget > MOST:
        raise FitError(f"{budget:,} attempts are more than can be shared out one by one; the most is {MOST:,}")
    counts = dict.fromkeys(curves, 1) if counts is None else counts
    if budget < (least := min(counts.values())):
        raise FitError(
            f"{budget} attempts are too few for one at each task of any kind; the least that works is {least}"
        )
    most = {kind: budget // counts[kind] for kind in curves}
    values = {kind: _concave(found, most[kind]) for kind, found in curves.items()}
    given, left = dict.fromkeys(curves, 0), budget
    waiting = [(-float(gain[0]), kind) for kind, gain in values.items() if most[kind]]
    heapq.heapify(waiting)
    while waiting:
        _, kind = heapq.heappop(waiting)
        if counts[kind] > left:
            continue
        left -= counts[kind]
        given[kind] += 1
        if given[kind] < most[kind]:
            heapq.heappush(waiting, (-float(values[kind][given[kind]]), kind))
    return given


class Plateau(NamedTuple):
    """After how many attempts one more adds less than a gain."""

    attempts: int
    lo: int
    hi: int
    """95 % interval, from the bootstrap of the fit."""


def plateau(found: Fit, gain: float) -> Plateau:
    """Where coverage is flat: N* = ceil(ln(gain / (F_max p)) / ln(1 - p)) of the closed form (Wang et al., 2025, arXiv
    2505.20522, section 3), and likewise the first N whose next attempt adds less, of any law of coverage.

    Args:
        found: a fit of coverage by attempts.
        gain: share of the tasks, between 0 and 1.

    Raises:
        FitError: a gain of another size, or it is not there after `MOST` attempts.
    """
    if not 0 < gain < 1:
        raise FitError(f"a gain is a share of the tasks between 0 and 1, got {gain:g}")
    least, tail = _flat(found.law, found.parameters[None], gain)[0], _flat(found.law, found.draws, gain)
    if least > MOST:
        raise FitError(f"one more attempt adds {gain:g} or more even after {MOST:,} attempts; take a larger gain")
    lo, hi = np.quantile(tail, [0.025, 0.975], method="inverted_cdf")
    return Plateau(int(least), int(min(lo, least)), int(max(hi, least)))


def _flat(law: Law, parameters: np.ndarray, gain: float) -> np.ndarray:
    """[R] the first N at which coverage by N + 1 is less than `gain` above that by N, for parameters [R, names]: by
    bisection, since coverage is concave; `MOST` + 1 where there is none."""

    def adds(n_R: np.ndarray) -> np.ndarray:
        return np.array([np.diff(law(np.array([n, n + 1.0]), p))[0] for n, p in zip(n_R, parameters, strict=True)])

    low, high = np.zeros(len(parameters), int), np.full(len(parameters), MOST + 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        below = (adds(np.maximum(middle, 1)) < gain) & (middle > 0)
        high, low = np.where(below, middle, high), np.where(below, low, np.maximum(middle, low))
    return high


def _concave(found: Fit, most: int) -> np.ndarray:
    """What the 1st, 2nd, ... attempt adds; no attempt solves nothing."""
    if not most:
        return np.empty(0)
    return np.diff(found.predict(np.arange(1, most + 1)).mean, prepend=0.0)


def cheapest(
    data: Fit, compute_price: float, data_price: float = 1.0, reach: tuple[float, float] = (0.1, 100.0)
) -> float:
    """The updates to a transition at which a threshold costs least: the sum of data, priced, and of updates, priced
    (Rybkin et al., 2025, arXiv 2502.04327, section 5: minimise C + delta D with C = sigma D).

    Args:
        data: transitions to the threshold by updates to a transition.
        compute_price: of an update.
        data_price: of a transition.
        reach: between which it is looked for.
    """
    sigma = np.geomspace(*reach, 2001)
    cost = data.predict(sigma).mean * (data_price + compute_price * sigma)
    return float(sigma[cost.argmin()])

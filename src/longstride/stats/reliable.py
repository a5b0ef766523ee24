"""Comparing methods over runs and tasks with few runs each: interquartile mean, performance profile, probability of
improvement, and stratified bootstrap intervals (Agarwal et al., 2021, "Deep Reinforcement Learning at the Edge of the
Statistical Precipice", arXiv 2108.13264), as `rliable` defines them.

What always holds: scores are [S runs, T tasks]; a task is a stratum, in which runs are drawn anew on their own, so runs
need not be paired between methods; the same scores and seed give the same interval.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import trim_mean

from longstride.core.seeds import derive
from longstride.stats.bootstrap import Effect
from longstride.stats.measures import chance_above

RESAMPLES = 2000
Scores = NDArray[np.float64]


def interquartile_mean(scores: ArrayLike) -> float:
    """The mean without the floor(n / 4) lowest and as many highest of all n = S T scores."""
    return float(trim_mean(_scores(scores).ravel(), 0.25))


def performance_profile(scores: ArrayLike, thresholds: Sequence[float]) -> list[float]:
    """The share of scores above each threshold."""
    values = _scores(scores)
    return [float((values > t).mean()) for t in thresholds]


def probability_of_improvement(a: ArrayLike, b: ArrayLike) -> float:
    """That a run of the first method scores above one of the second, ties half, averaged over tasks.

    Raises:
        ValueError: not the same tasks.
    """
    left, right = _scores(a), _scores(b)
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"methods are compared on the same tasks, got {left.shape[1]} and {right.shape[1]}")
    return float(chance_above(left, right).mean())


def stratified_interval(
    statistic: Callable[..., float], *scores: ArrayLike, seed: int, level: float = 0.95, resamples: int = RESAMPLES
) -> Effect:
    """A statistic of one method's scores, or of several methods', with its percentile interval over stratified
    bootstrap samples. With few runs it is too narrow, as all percentile intervals are.

    Raises:
        ValueError: no scores.
    """
    given = [_scores(s) for s in scores]
    rng = np.random.default_rng(derive(seed, "stratified"))
    drawn = []
    for _ in range(resamples):
        drawn.append(statistic(*(np.take_along_axis(s, rng.integers(len(s), size=s.shape), 0) for s in given)))
    tail = 50 * (1 - level)
    lo, hi = np.percentile(drawn, [tail, 100 - tail])
    return Effect(statistic(*given), float(lo), float(hi))


def _scores(scores: ArrayLike) -> Scores:
    values = np.asarray(scores, float)
    if values.ndim != 2 or not values.size:
        raise ValueError(f"expected scores of [runs, tasks], got shape {values.shape}")
    return values

"""Bootstrap intervals for means, paired and two-level.

What always holds: the same values and seed give the same interval; an interval contains its mean; each effect is
*paired*: what the arms share (seed, tasks) is resampled together and cancels.

A percentile bootstrap of n values is too narrow for small n: its spread lacks the factor sqrt(n / (n - 1)), and it
takes normal quantiles where the deviation itself is estimated (Hesterberg, 2015, "What teachers should know about the
bootstrap", section 4). Both are mended by widening it about the mean by sqrt(n / (n - 1)) * t_{n-1} / z, 1.58 for
five seeds and 1.00 for many values: claims rest on a handful of seeds, and must not be certain too early.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from longstride.core.seeds import derive

RESAMPLES = 10_000
CHUNK = 1 << 22
"""Numbers drawn at once: bounds the memory to tens of megabytes."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A mean difference with its interval."""

    mean: float
    lo: float
    hi: float


def mean_interval(values: Sequence[float], seed: int, level: float = 0.95) -> tuple[float, float]:
    """Bootstrap interval of a mean. One value, and values that are all equal, give an interval of no width: for a
    share near 0 or 1 see `wilson_interval`.

    Raises:
        ValueError: no values.
    """
    effect = _interval(_array(values, 1)[:, None], seed, level)
    return effect.lo, effect.hi


def paired_difference(a: Sequence[float], b: Sequence[float], seed: int, level: float = 0.95) -> Effect:
    """Mean of a - b over pairs, such as the seeds of two arms.

    Raises:
        ValueError: not the same number of values, or fewer than two pairs.
    """
    return _paired(a, b, 1, seed, level)


def paired_difference_clustered(a: ArrayLike, b: ArrayLike, seed: int, level: float = 0.95) -> Effect:
    """Mean of a - b where tasks lie within seeds: seeds are resampled, then tasks within each drawn seed.

    Where every seed has tasks of its own, their scatter is counted twice (within seeds, and through the means of
    seeds), which errs on the careful side. Where all seeds are tested on the same tasks, as language agents are, what
    is peculiar to a task does not show as scatter of seeds: the interval is of these tasks, and says less of others.

    Args:
        a: results (seeds, tasks) of one arm.
        b: of the other; entry by entry the same seed and task.
        seed: of the resampling.
        level: of the interval.

    Raises:
        ValueError: the shapes differ, or there are fewer than two seeds.
    """
    return _paired(a, b, 2, seed, level)


def _paired(a: ArrayLike, b: ArrayLike, ndim: int, seed: int, level: float) -> Effect:
    left, right = _array(a, ndim), _array(b, ndim)
    if left.shape != right.shape:
        raise ValueError(f"a pair needs both sides: shapes {left.shape} and {right.shape}")
    if len(left) < 2:
        raise ValueError("one pair says nothing about scatter: at least two are needed")
    return _interval((left - right).reshape(len(left), -1), seed, level)


def _array(values: ArrayLike, ndim: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != ndim or not array.size:
        raise ValueError(f"expected an array of {ndim} dimensions that is not empty, got shape {array.shape}")
    return array


def _interval(values_ST: NDArray[np.float64], seed: int, level: float) -> Effect:
    """The interval of the mean of (S clusters, T values each)."""
    rng = np.random.default_rng(derive(seed, "bootstrap"))
    S, T = values_ST.shape
    flat, mean = values_ST.ravel(), float(values_ST.mean())
    means, chunk = [], max(1, CHUNK // (S * T))
    for first in range(0, RESAMPLES, chunk):
        R = min(chunk, RESAMPLES - first)
        index = rng.integers(S, size=(R, S, 1), dtype=np.int32) * T
        if T > 1:
            index = index + rng.integers(T, size=(R, S, T), dtype=np.int32)
        means.append(flat[index].mean(axis=(1, 2)))
    tail = 50 * (1 - level)
    lo, hi = np.percentile(np.concatenate(means), [tail, 100 - tail])
    wide = sqrt(S / (S - 1)) * t_over_z(S - 1, level) if S > 1 else 1.0
    # Very skewed values can leave the mean outside its own percentiles; the interval is stretched to hold it.
    return Effect(mean, mean - wide * max(0.0, mean - float(lo)), mean + wide * max(0.0, float(hi) - mean))


def t_over_z(df: int, level: float) -> float:
    """The quantile of Student's t with `df` degrees of freedom divided by the normal one: how much wider an interval of
    this level is because the deviation is estimated."""
    upper = (1 + level) / 2
    return float(stdtrit(df, upper) / ndtri(upper))

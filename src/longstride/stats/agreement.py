"""What a scorer is worth against labels: calibration, order and agreement.

What always holds: closed forms, no randomness; a label is 0 or 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from longstride.stats.measures import chance_above


@dataclass(frozen=True, slots=True)
class Bin:
    """The answers whose scores fell between two edges."""

    low: float
    high: float
    count: int
    score: float
    """Mean score."""
    right: float
    """Share that was right."""


def reliability(scores: ArrayLike, right: ArrayLike, bins: int = 10) -> list[Bin]:
    """Bins of equal width over [0, 1] that hold any answer, from low to high: what a reliability diagram draws. A score
    on an edge is in the upper bin.

    Args:
        scores: (N,) probabilities of being right.
        right: (N,) labels.
        bins: how many.

    Raises:
        ValueError: no scores, not one label each, or a score outside [0, 1].
    """
    p_N, y_N = _paired(scores, right)
    if ((p_N < 0) | (p_N > 1)).any():
        raise ValueError(f"a probability is in [0, 1]; got scores from {p_N.min():g} to {p_N.max():g}")
    place_N = np.minimum((p_N * bins).astype(int), bins - 1)
    return [
        Bin(k / bins, (k + 1) / bins, int(of.sum()), float(p_N[of].mean()), float(y_N[of].mean()))
        for k in range(bins)
        if (of := place_N == k).any()
    ]


def calibration_error(scores: ArrayLike, right: ArrayLike, bins: int = 10) -> float:
    """Expected calibration error: the mean over answers of the distance, in their bin, between mean score and share
    that was right (Naeini et al., 2015; Guo et al., 2017, arXiv 1706.04599, equation 3). Arguments and errors are those
    of `reliability`."""
    found = reliability(scores, right, bins)
    return sum(b.count * abs(b.score - b.right) for b in found) / sum(b.count for b in found)


def pair_accuracy(scores: ArrayLike, right: ArrayLike) -> float:
    """Share of pairs of a right and a wrong answer that the scores put in order, an equal pair counting half (the area
    under the ROC curve). 0.5 is chance.

    Raises:
        ValueError: no pair of a right and a wrong answer, or not one label each.
    """
    p_N, y_N = _paired(scores, right)
    if np.ptp(y_N) == 0:
        raise ValueError("a pair needs a right and a wrong answer; all labels are the same")
    return float(chance_above(p_N[y_N == 1], p_N[y_N == 0]))


def kappa(first: Sequence[object], second: Sequence[object]) -> float:
    """Cohen's kappa: the agreement of two raters beyond what their own shares of verdicts would give by chance, 1 where
    they always agree (Cohen, 1960). 1 too where both give the same verdict to all.

    Raises:
        ValueError: no verdicts, or not as many of each.
    """
    if not first or len(first) != len(second):
        raise ValueError(f"kappa compares verdicts on the same answers; got {len(first)} and {len(second)}")
    n = len(first)
    agreed = sum(a == b for a, b in zip(first, second, strict=True)) / n
    chance = sum(first.count(v) * second.count(v) for v in set(first)) / n**2
    return 1.0 if chance == 1 else (agreed - chance) / (1 - chance)


def _paired(scores: ArrayLike, right: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    p_N, y_N = np.asarray(scores, np.float64), np.asarray(right, np.float64)
    if p_N.ndim != 1 or p_N.shape != y_N.shape or not len(p_N):
        raise ValueError(f"expected a label for each of one or more scores, got shapes {p_N.shape} and {y_N.shape}")
    return p_N, y_N

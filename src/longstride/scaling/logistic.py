"""Logistic regression with a penalty, by Newton's method. NumPy, no torch."""

from collections.abc import Sequence
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike

SLOPE_RIDGE = 0.5
"""Weight of the squared slope of `line`: without it, tasks that are all done or none have an endless one."""


def chance(log_odds: ArrayLike) -> np.ndarray:
    """1 / (1 + exp(-log_odds))."""
    return 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))


def logistic(design: np.ndarray, done: ArrayLike, ridge: ArrayLike, weights: ArrayLike | None = None) -> np.ndarray:
    """[k] coefficients of log-odds that minimise the negative log-likelihood plus half of ridge times their squares.

    Args:
        design: [n, k].
        done: [n] shares between 0 and 1.
        ridge: [k] weights of the squares.
        weights: [n] of the rows; 1 each if left out.
    """
    y, penalty, beta = np.asarray(done, float), np.asarray(ridge, float), np.zeros(design.shape[1])
    weight = np.ones(len(y)) if weights is None else np.asarray(weights, float)
    for _ in range(50):
        p = chance(design @ beta)
        gradient = design.T @ (weight * (y - p)) - penalty * beta
        step = np.linalg.solve((design * (weight * p * (1 - p))[:, None]).T @ design + np.diag(penalty), gradient)
        beta = beta + np.clip(step, -2, 2)
        if abs(step).max() < 1e-9:
            break
    return beta


def line(x: Sequence[float], done: Sequence[bool]) -> tuple[float, float]:
    """Height at 0 and slope of log-odds that are linear in x; the slope is penalised by `SLOPE_RIDGE`, and the height
    pulled to even odds by half a success and half a failure."""
    mean = fmean(x)
    at = np.array([*x, mean, mean]) - mean
    y, weight = np.array([*map(float, done), 1.0, 0.0]), np.array([1.0] * len(done) + [0.5, 0.5])
    height, slope = logistic(np.stack([np.ones_like(at), at], 1), y, [0.0, SLOPE_RIDGE], weight)
    return float(height - slope * mean), float(slope)

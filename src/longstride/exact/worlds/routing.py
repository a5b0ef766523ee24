"""A weak and a strong model that share solutions step by step: tasks played all at once, and what a router that sees
scores can know and plan.

What always holds: a solution is wrong from its first wrong step on; a scorer sees 1 or -1 plus noise, and what it says
has the odds of what it saw (`rewards.simulated.StepScorer` without drift). NumPy only.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

GRID = np.linspace(0, 1, 101)
"""Beliefs of which values are kept."""


def said(right: np.ndarray, errors: np.ndarray, noise: float) -> np.ndarray:
    """Scores of solutions, given whether all of their steps are right, and standard normal errors."""
    log_odds = 2 * (np.where(right, 1.0, -1.0) / noise + errors) / noise
    return 1 / (1 + np.exp(-log_odds.clip(-700, 700)))


class Routed:
    """Tasks of one level that are under way together.

    Args:
        chances: of a right step, of the weak and of the strong model.
        noise: of the scorer.
        n: tasks.
        rng: for steps and scores.
    """

    def __init__(self, chances: tuple[float, float], noise: float, n: int, rng: np.random.Generator) -> None:
        self._chances, self._noise, self._rng = chances, noise, rng
        self.right_N = np.ones(n, bool)
        """Whether all steps so far are right."""
        self.strong_N = np.zeros(n)
        """Steps of the strong model."""

    def step(self, gives: Callable[[np.ndarray], np.ndarray | bool]) -> np.ndarray:
        """Takes a step with the weak model, and again with the strong one where `gives` says so of the scores [N] of
        the first. Returns the scores [N] of what was kept."""
        (right_N, score_N), (right_again_N, score_again_N) = map(self._tried, self._chances)
        again_N = gives(score_N)
        self.right_N = np.where(again_N, right_again_N, right_N)
        self.strong_N += again_N
        return np.where(again_N, score_again_N, score_N)

    def _tried(self, chance: float) -> tuple[np.ndarray, np.ndarray]:
        """[N] whether all steps would be right after one more, and what the scorer would say."""
        n = len(self.right_N)
        right_N = self.right_N & (self._rng.random(n) < chance)
        return right_N, said(right_N, self._rng.normal(size=n), self._noise)


def seen(belief: Any, chance: Any, score: Any) -> tuple[Any, Any]:
    """Probabilities, after a step and its score, that all steps are right, and that all before it are.

    Args:
        belief: that all steps before it are right.
        chance: of a right step.
        score: its odds are the ratio of likelihoods of what the scorer saw, right to wrong.
    """
    right, last, lost = belief * chance * score, belief * (1 - chance) * (1 - score), (1 - belief) * (1 - score)
    total = np.maximum(right + last + lost, 1e-300)
    return right / total, (right + last) / total


@cache
def planned(
    weak: float, strong: float, noise: float, length: int, price: float
) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """By step the chances of success, less prices still to come: of keeping a step after which all are right with a
    probability of `GRID`, and of giving it to the strong model, all before it being right with this probability."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(31)
    scores_SN = [said(np.array(right), nodes, noise) for right in (True, False)]

    def expected(chance: float, value: Callable[[Any, Any], np.ndarray]) -> np.ndarray:
        """By belief before a step, over its score; the value is of the two probabilities after it."""
        right, wrong = (value(*seen(GRID[:, None], chance, score_N)) @ weights / weights.sum() for score_N in scores_SN)
        return GRID * chance * right + (1 - GRID * chance) * wrong

    plan, after = [], GRID
    for _ in range(length):
        keep, again = after, expected(strong, lambda right, _, v=after: np.interp(right, GRID, v))
        plan.append((keep, again))
        after = expected(
            weak,
            lambda right, before, v=keep, w=again: np.maximum(
                np.interp(right, GRID, v), np.interp(before, GRID, w) - price
            ),
        )
    return tuple(reversed(plan))


def needed(share_R: np.ndarray, success_R: np.ndarray, weak: float, strong: float, gap: float) -> float:
    """Least share of strong steps that gives weak + gap (strong - weak), on the line through what each router came to,
    the weak model alone and the strong one alone."""
    points = sorted(zip([0.0, *share_R, 1.0], [weak, *success_R, strong], strict=True))
    target = weak + gap * (strong - weak)
    for (x, y), (x_next, y_next) in zip(points, points[1:], strict=False):
        if y_next >= target:
            return float(x + (x_next - x) * (target - y) / (y_next - y))
    raise AssertionError  # pragma: no cover: the strong model alone reaches it

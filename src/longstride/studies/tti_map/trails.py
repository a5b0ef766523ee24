"""The map on trails (`envs.dial`): the exact model beside a run, from the habits that the world measured."""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from longstride.core.numbers import Count, Share
from longstride.envs.dial import Habits
from longstride.studies.tti_map.exact import Errands


class Trails(Errands):
    """Errands whose pages take one step: a trail of distance d has d - 1 of them, and then the answer."""

    USEFUL: ClassVar[int] = 1

    nearest: Count = 1
    """Fewest pages of a task."""
    false_positive: Share = 0.0
    """How often a wrong answer is paid in training."""

    @property
    def sizes(self) -> range:
        return range(self.nearest, self.deepest + 1)

    def pays(self, page: np.ndarray, pages: np.ndarray) -> np.ndarray:
        return np.full(len(page), self.false_positive)


def expected(habits: Habits, distances: Iterable[int], turns: int) -> dict[int, float]:
    """Success by goal distance that a policy with these habits has within so many turns, as the exact model says.

    It knows no wrong links: a turn on one, and each step back, counts as one that is wasted.
    """
    distances = sorted(set(distances))
    found = {
        "begins": np.array(habits.begins or 0.0),
        "goes_on": np.array(habits.goes_on or 0.0),
        "quits": np.full(max(distances), habits.quits or 0.0),
    }
    problem = Trails(deepest=max(distances), horizon=turns)
    return {d: float(problem.expect(found, d - 1)[1]) for d in distances}

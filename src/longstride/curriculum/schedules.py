"""Schedules: a limit, of turns or of sampled tokens, as a function of the iteration.

What always holds: a schedule is a pure function of iteration and difficulty, so a resumed run sees the same limits;
it returns at least 1; a growing schedule never shrinks and never passes its `limit`.
"""

from abc import abstractmethod
from typing import Self

from pydantic import model_validator

from longstride.core.component import Component
from longstride.core.numbers import Count
from longstride.core.task import Difficulty


class Schedule(Component):
    """Family: a limit by iteration and difficulty."""

    @abstractmethod
    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
        """The limit h: as a horizon in environment steps (an answer is a step), as a budget in tokens; `iteration`
        counts from 1."""


class Fixed(Schedule):
    """h(i) = limit: the baselines of TTI (arXiv 2506.07976; 10 and 30 in its main tables)."""

    limit: Count
    """The limit of every iteration."""

    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
        return self.limit


class Growing(Schedule):
    """What grows from `start` to `limit` and stays there."""

    start: Count
    """Limit at the beginning (each rule says what that means)."""
    limit: Count
    """What is never passed."""

    @model_validator(mode="after")
    def _grows(self) -> Self:
        if self.limit < self.start:
            raise ValueError(f"limit must be at least start ({self.start}), got {self.limit}")
        return self


class Multiplicative(Growing):
    """h(i) = min(start * i, limit): the rule that TTI chose (arXiv 2506.07976, h_min = 10, h_max = 30)."""

    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
        return min(self.start * iteration, self.limit)


class Additive(Growing):
    """h(i) = min(start + step * i, limit): TTI's ablated rule (step 1). The first iteration has start + step
    already."""

    step: Count = 1
    """What each iteration adds."""

    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
        return min(self.start + self.step * iteration, self.limit)

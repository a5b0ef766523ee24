"""Schedules: a limit, of turns or of sampled tokens, as a function of the iteration.

What always holds: a schedule is a function of iteration and difficulty, and, where it is adaptive, of what came before
the iteration, so a resumed run sees the same limits; it returns at least 1; a growing schedule never shrinks and never
passes its `limit`.
"""

from abc import abstractmethod
from typing import Self

from pydantic import model_validator

from longstride.core.component import Component
from longstride.core.experience import Experience
from longstride.core.numbers import Count
from longstride.core.task import Difficulty


class Schedule(Component):
    """Family: a limit by iteration and difficulty."""

    @property
    def adaptive(self) -> bool:
        """Whether it depends on earlier iterations; then nothing is rolled out ahead of the update."""
        return False

    @abstractmethod
    def at(self, iteration: int, difficulty: Difficulty = "easy", experience: Experience | None = None) -> int:
        """The limit h: as a horizon in environment steps (an answer is a step), as a budget in tokens.

        Args:
            iteration: from 1.
            difficulty: of the task.
            experience: what came before the iteration, this one's episodes included once it was played; only an
                adaptive schedule reads it.

        Raises:
            ConfigError: an adaptive schedule stands where there is no experience.
        """

    def most(self, iterations: int, difficulty: Difficulty = "easy") -> int:
        """The largest limit of a run of so many iterations, which is known before it begins."""
        return max(self.at(i, difficulty) for i in range(1, iterations + 1))


class Fixed(Schedule):
    """h(i) = limit: the baselines of TTI (arXiv 2506.07976; 10 and 30 in its main tables)."""

    limit: Count
    """The limit of every iteration."""

    def at(self, iteration: int, difficulty: Difficulty = "easy", experience: Experience | None = None) -> int:
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

    def at(self, iteration: int, difficulty: Difficulty = "easy", experience: Experience | None = None) -> int:
        return min(self.start * iteration, self.limit)

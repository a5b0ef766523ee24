"""Schedules: a limit, of turns or of sampled tokens, as a function of the iteration.

What always holds: a schedule is a function of iteration and difficulty, and, where it is adaptive, of what came before
the iteration, so a resumed run sees the same limits; it returns at least 1; a growing schedule never shrinks and never
passes its `limit`.
"""

from abc import abstractmethod
from itertools import pairwise
from numbers import Integral
from typing import Annotated, Self

from pydantic import Field, model_validator

from longstride.core.component import Component
from longstride.core.errors import OwnCodeError, short
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

    def limit_at(self, iteration: int, difficulty: Difficulty = "easy", experience: Experience | None = None) -> int:
        """What `at` gives, held to being a limit.

        Raises:
            OwnCodeError: it is no whole number of at least 1.
        """
        limit = self.at(iteration, difficulty, experience)
        if not isinstance(limit, Integral) or limit < 1:
            raise OwnCodeError(
                f"{type(self).__name__}.at gives {short(limit)} for iteration {iteration}; expected a whole number of "
                "at least 1"
            )
        return int(limit)

    def most(self, iterations: int, difficulty: Difficulty = "easy") -> int:
        """The largest limit of a run of so many iterations, which is known before it begins."""
        return max(self.limit_at(i, difficulty) for i in range(1, iterations + 1))


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


class Linear(Growing):
    """A straight line from `start` in iteration 1 to `limit` in iteration `cap`, climbed in stairs.

    h(i) = limit for i >= cap, else start + floor((limit - start) * q / (cap - 1)) where q = interval * floor((i - 1)
    / interval): the line is read every `interval` iterations and held in between. AsyncWebRL (arXiv 2606.05597) names
    such a schedule (linear by step) without a formula; this one is ours.
    """

    interval: Count
    """Iterations for which a value is held."""
    cap: Annotated[int, Field(ge=2)]
    """The first iteration at `limit`."""

    def at(self, iteration: int, difficulty: Difficulty = "easy", experience: Experience | None = None) -> int:
        if iteration >= self.cap:
            return self.limit
        climbed = (iteration - 1) // self.interval * self.interval
        return self.start + (self.limit - self.start) * climbed // (self.cap - 1)


class StepList(Schedule):
    """h(i) = the limit of the first entry whose last iteration is not before i; after the last entry its limit stays.

    TTI's released scripts: steps = [(1, 10), (3, 20), (4, 30)], that is 10, 20, 20, 30, 30, ...
    """

    steps: Annotated[tuple[tuple[Count, Count], ...], Field(min_length=1)]
    """(last iteration, limit), ordered by iteration."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if any(a >= b for (a, _), (b, _) in pairwise(self.steps)):
            raise ValueError("the last iterations of `steps` must ascend")
        return self

    def at(self, iteration: int, difficulty: Difficulty = "easy", experience: Experience | None = None) -> int:
        return next((limit for last, limit in self.steps if iteration <= last), self.steps[-1][1])


class PerDifficulty(Schedule):
    """A schedule for each difficulty: WebGym (arXiv 2601.02439) trains with 10, 20, 30 turns and tests with 30, 50,
    70."""

    easy: Schedule
    medium: Schedule
    hard: Schedule

    @property
    def adaptive(self) -> bool:
        return self.easy.adaptive or self.medium.adaptive or self.hard.adaptive

    def at(self, iteration: int, difficulty: Difficulty = "easy", experience: Experience | None = None) -> int:
        return self._of(difficulty).at(iteration, difficulty, experience)

    def most(self, iterations: int, difficulty: Difficulty = "easy") -> int:
        return self._of(difficulty).most(iterations, difficulty)

    def _of(self, difficulty: Difficulty) -> Schedule:
        by_name: dict[Difficulty, Schedule] = {"easy": self.easy, "medium": self.medium, "hard": self.hard}
        return by_name[difficulty]

"""Limits that go down and up again (`Cyclic`): cosine, stair and both."""

from abc import abstractmethod
from math import cos, pi
from typing import Annotated, Self

from pydantic import Field, model_validator

from longstride.core.experience import Experience
from longstride.core.numbers import Count
from longstride.core.task import Difficulty
from longstride.curriculum import Schedule


class Cyclic(Schedule):
    """Family of limits that go down and up again. The first iteration stands at the beginning of a cycle; a limit stays
    between `low` and `high`."""

    high: Count
    """At the beginning, the middle of an expansion."""
    low: Count
    """Half a cycle later."""
    period: Annotated[int, Field(ge=2)]
    """Iterations of a cycle."""

    @model_validator(mode="after")
    def _falls(self) -> Self:
        if self.high < self.low:
            raise ValueError(f"high must be at least low ({self.low}), got {self.high}")
        return self

    def at(self, iteration: int, difficulty: Difficulty = "easy", experience: Experience | None = None) -> int:
        share = self._share(((iteration - 1) % self.period) / self.period)
        return round(self.low + (self.high - self.low) * share)

    @abstractmethod
    def _share(self, phase: float) -> float:
        """How far above `low`, 0 to 1, at a phase in [0, 1)."""


class Cosine(Cyclic):
    """A cosine from `high` to `low` and back."""

    def _share(self, phase: float) -> float:
        return (1 + cos(2 * pi * phase)) / 2


class Stair(Cyclic):
    """`high` for half a cycle, `low` for the other half."""

    def _share(self, phase: float) -> float:
        return float(phase < 0.5)


class StairCosine(Cyclic):
    """A quarter of the cycle at `high`, around its beginning, a quarter at `low`, and half a cosine on the way down and
    on the way up."""

    def _share(self, phase: float) -> float:
        from_start = min(phase, 1 - phase)
        return (1 + cos(2 * pi * min(max(2 * from_start - 0.25, 0.0), 0.5))) / 2

"""A limit of turns that grows in steps (`StepSchedule`)."""

from typing import Annotated

from pydantic import Field

from longstride.core.experience import Experience
from longstride.core.numbers import Count
from longstride.core.task import Difficulty
from longstride.curriculum import Schedule


class StepSchedule(Schedule):
    """h(i) = steps[min(floor(i / every), n - 1)] (section 3; WebArena: [8, 12, 15] every 80).

    As in the released scheduler the division is of the update's own number, so the first step lasts `every` - 1 updates
    counted from 1.
    """

    steps: Annotated[tuple[Count, ...], Field(min_length=1)]
    """The limits, one after the other."""
    every: Count
    """Updates between two of them."""

    def at(self, iteration: int, difficulty: Difficulty = "easy", experience: Experience | None = None) -> int:
        return self.steps[min(iteration // self.every, len(self.steps) - 1)]

"""Budget schedules: how much an episode may take, turns or sampled tokens, as a function of the iteration.

What always holds: a schedule is a pure function of iteration and difficulty, so a resumed run sees the same budgets;
it returns at least 1; a growing schedule never shrinks and never passes its `limit`, a cyclic one stays between its
`low` and its `high`; nothing here knows the horizon of the tests, which is a schedule of its own (TTI tests at its
training limit, WebGym far beyond it).
"""

from abc import abstractmethod
from itertools import pairwise
from math import cos, pi
from typing import Annotated, Self

from pydantic import Field, model_validator

from longstride.core.component import Component
from longstride.core.task import Difficulty

Positive = Annotated[int, Field(ge=1)]


class BudgetSchedule(Component):
    """Family: a limit of turns, or of sampled tokens, by iteration and difficulty."""

    @abstractmethod
    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
        """The limit h: as a horizon in environment steps (an answer is a step), as a budget in tokens; `iteration`
        counts from 1."""


class Fixed(BudgetSchedule):
    """h(i) = limit: the baselines of TTI (arXiv 2506.07976; 10 and 30 in its main tables)."""

    limit: Positive
    """The limit of every iteration."""

    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
        return self.limit


class Growing(BudgetSchedule):
    """What grows from `start` to `limit` and stays there."""

    start: Positive
    """Limit at the beginning (each rule says what that means)."""
    limit: Positive
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

    step: Positive = 1
    """What each iteration adds."""

    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
        return min(self.start + self.step * iteration, self.limit)


class Linear(Growing):
    """A straight line from `start` in iteration 1 to `limit` in iteration `cap`, climbed in stairs.

    h(i) = limit for i >= cap, else start + floor((limit - start) * q / (cap - 1)) where q = interval * floor((i - 1)
    / interval): the line is read every `interval` iterations and held in between. AsyncWebRL (arXiv 2606.05597) names
    such a schedule (linear by step) without a formula; this one is ours.
    """

    interval: Positive
    """Iterations for which a value is held."""
    cap: Annotated[int, Field(ge=2)]
    """The first iteration at `limit`."""

    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
        if iteration >= self.cap:
            return self.limit
        climbed = (iteration - 1) // self.interval * self.interval
        return self.start + (self.limit - self.start) * climbed // (self.cap - 1)


class StepList(BudgetSchedule):
    """h(i) = the limit of the first entry whose last iteration is not before i; after the last entry its limit stays.

    TTI's released scripts: steps = [(1, 10), (3, 20), (4, 30)], that is 10, 20, 20, 30, 30, ...
    """

    steps: Annotated[tuple[tuple[Positive, Positive], ...], Field(min_length=1)]
    """(last iteration, limit), ordered by iteration."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if any(a >= b for (a, _), (b, _) in pairwise(self.steps)):
            raise ValueError("the last iterations of `steps` must ascend")
        return self

    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
        return next((limit for last, limit in self.steps if iteration <= last), self.steps[-1][1])


class Staged(BudgetSchedule):
    """h(i) = stages[min(floor(i / every), n - 1)]: ScalingInter-RL (arXiv 2509.08755, section 3; WebArena: [8, 12,
    15] every 80).

    As in its scheduler the division is of the update's own number, so the first stage lasts `every` - 1 updates
    counted from 1.
    """

    stages: Annotated[tuple[Positive, ...], Field(min_length=1)]
    """The limit of each stage."""
    every: Positive
    """Updates between two stages."""

    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
        return self.stages[min(iteration // self.every, len(self.stages) - 1)]


class PerDifficulty(BudgetSchedule):
    """A schedule for each difficulty: WebGym (arXiv 2601.02439) trains with 10, 20, 30 turns and tests with 30, 50,
    70."""

    easy: BudgetSchedule
    medium: BudgetSchedule
    hard: BudgetSchedule

    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
        by_name: dict[Difficulty, BudgetSchedule] = {"easy": self.easy, "medium": self.medium, "hard": self.hard}
        return by_name[difficulty].at(iteration, difficulty)


class Cyclic(BudgetSchedule):
    """Family of budgets that go down and up again (SIRI, arXiv 2509.25176). The first iteration stands at the
    beginning of a cycle."""

    high: Positive
    """At the beginning, the middle of an expansion."""
    low: Positive
    """Half a cycle later."""
    period: Annotated[int, Field(ge=2)]
    """Iterations of a cycle."""

    @model_validator(mode="after")
    def _falls(self) -> Self:
        if self.high < self.low:
            raise ValueError(f"high must be at least low ({self.low}), got {self.high}")
        return self

    def at(self, iteration: int, difficulty: Difficulty = "easy") -> int:
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
    """One of SIRI's three schedules: a quarter of the cycle at `high`, around its beginning, a quarter at `low`, and
    half a cosine on the way down and on the way up."""

    def _share(self, phase: float) -> float:
        from_start = min(phase, 1 - phase)
        return (1 + cos(2 * pi * min(max(2 * from_start - 0.25, 0.0), 0.5))) / 2

"""Tasks that are solved step by step, by models and scorers that are known: what more compute buys, counted exactly.

After the first wrong step a solution cannot become right again, unless it is revised; that step decides which wrong
answer it comes to, and some are likelier than others, so that a vote can be wrong. What always holds: labels of steps
are known, and a model takes a right step with a chance that depends on the task alone. NumPy only.
"""

from dataclasses import dataclass
from functools import cached_property
from math import exp
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from longstride.core.component import Component
from longstride.core.numbers import Count, Share
from longstride.rewards.simulated import StepScorer

RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Solution:
    """Steps so far."""

    labels: tuple[bool, ...] = ()
    """Whether each step is right."""
    wrong: str = ""
    """The answer that its first wrong step leads to."""
    scores: tuple[float, ...] = ()
    """What the scorer said after each step."""
    error: float = 0.0
    """Of the scorer at the last step, in standard deviations."""


class Model(Component):
    """Who takes steps."""

    skill: float = 0.0
    """Added to the log-odds of a right step; a weak model has 0."""
    tokens: Count = 10
    """Of a step."""

    def chance(self, success: float, length: int) -> float:
        """Of a right step, in a task that a model of skill 0 solves in one go with chance `success`, in (0, 1)."""
        p = success ** (1 / length)
        return p / (p + (1 - p) * exp(-self.skill))


class StepWorld(Component):
    """What all tasks have in common."""

    length: Count = 6
    """Steps of a solution."""
    wrong: Annotated[tuple[Share, ...], Field(min_length=1)] = (0.5, 0.3, 0.2)
    """Chance of each wrong answer after a wrong step."""

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if abs(sum(self.wrong) - 1) > 1e-9:
            raise ValueError(f"the chances of wrong answers must add up to 1, got {self.wrong}")
        return self

    @cached_property
    def _below(self) -> np.ndarray:
        return np.cumsum(self.wrong)

    def step(self, solution: Solution, right: bool, scorer: StepScorer, rng: np.random.Generator) -> Solution:
        """The solution after a right or a wrong step, as the scorer sees it."""
        wrong = solution.wrong
        if not right and not wrong:
            wrong = f"wrong {min(int(np.searchsorted(self._below, rng.random())), len(self.wrong) - 1)}"
        labels = (*solution.labels, right)
        age = len(labels) - 1 - labels.index(False) if wrong else None
        said, error = scorer.see(len(labels), age, solution.error, rng)
        return Solution(labels, wrong, (*solution.scores, said), error)

    def answer(self, solution: Solution) -> str | None:
        """Of a finished solution; None of any other."""
        return (solution.wrong or RIGHT) if len(solution.labels) == self.length else None

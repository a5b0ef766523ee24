"""Tasks that are solved step by step, by models and scorers that are known: what more compute buys, counted exactly.

After the first wrong step a solution cannot become right again, unless it is revised; that step decides which wrong
answer it comes to, and some are likelier than others, so that a vote can be wrong. What always holds: labels of steps
are known, and a model takes a right step with a chance that depends on the task alone. NumPy only.
"""

from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, prod, sqrt
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from longstride.core.component import Component
from longstride.core.numbers import Count, CountOrZero, Positive, Share, Weight

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


class StepScorer(Component):
    """Says after each step how likely a solution is still right, from evidence that is 1 where it is and -1 where it is
    not, plus noise: the probability that this evidence leaves, right and wrong being equally likely before. Without
    noise that is the label, and with infinite noise 0.5. It knows how well it sees, unless it is misled: an error that
    is younger than `lag` steps looks right, and better than that by `lure`."""

    noise: Weight = 0.0
    """Standard deviation."""
    drift: Share = 0.0
    """Correlation of the noise with that of the step before: a scorer that was taken in stays so."""
    every: Count = 1
    """Steps from one at which it sees as well as `noise` says to the next; at others the noise is `haze` times that."""
    haze: Positive = 10.0
    lag: CountOrZero = 0
    """Steps for which an error passes for right."""
    lure: Weight = 0.0
    """What such an error adds to the evidence."""
    trust: Positive = 1.0
    """Factor of the log-odds: above 1 the scorer is surer than its evidence allows."""
    aggregate: Literal["last", "min", "product", "mean"] = "last"
    """How what it said after each step becomes the score of a solution."""
    tokens: CountOrZero = 0
    """That it reads for a step."""

    def see(self, step: int, age: int | None, before: float, rng: np.random.Generator) -> tuple[float, float]:
        """What it says of a solution, and its error in standard deviations.

        Args:
            step: number of the last step, from 1.
            age: steps since the first wrong one, which itself has 0; None where all are right.
            before: its error at the step before, if there was one.
            rng: for its noise.
        """
        error = float(rng.normal())
        if step > 1:
            error = self.drift * before + sqrt(1 - self.drift**2) * error
        seen, lure = age is not None and age >= self.lag, 0.0 if age is None or age >= self.lag else self.lure
        noise = self.noise if step % self.every == 0 else self.haze * self.noise
        if noise == 0:
            return float(not seen), error
        if noise == inf:
            return 0.5, error
        log_odds = 2 * self.trust * ((-1.0 if seen else 1.0 + lure) + noise * error) / noise**2
        return 1 / (1 + exp(-max(-700.0, min(700.0, log_odds)))), error

    def score(self, scores: tuple[float, ...]) -> float:
        """Of a solution of which it said this after its steps, one or more."""
        if self.aggregate == "last":
            return scores[-1]
        if self.aggregate == "min":
            return min(scores)
        return prod(scores) if self.aggregate == "product" else sum(scores) / len(scores)


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

"""A scorer of steps whose errors are known: what searches and guides meet where the truth can be read."""

from math import exp, inf, prod, sqrt
from typing import Literal

import numpy as np

from longstride.core.component import Component
from longstride.core.numbers import Count, CountOrZero, Positive, Share, Weight


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

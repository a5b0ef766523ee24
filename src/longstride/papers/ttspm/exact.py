"""TTSPM on tasks of known chances: coverage by many attempts, from few."""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Positive
from longstride.exact.answers import SEEDS, Chance
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.scaling import Geometric, Law, MixedGeometric, fit
from longstride.stats import Ordering


class Attempted(ExactProblem):
    """Tasks of known chances. Measures: `accuracy` (1 - distance of the predicted coverage at `beyond` from the exact
    one) and `octaves` (by how many doublings the predicted N* is off)."""

    tasks: Count = 300
    """How many."""
    mean: Chance = 0.15
    """Mean chance of an attempt."""
    concentration: Positive | None = None
    """a + b of the Beta that chances are drawn from; `None`: all have the mean."""
    few: Annotated[int, Field(ge=4)] = 8
    """Largest N that the law is fitted to."""
    beyond: Count = 64
    """N whose coverage is predicted."""
    gain: Positive = 0.002
    """eps: what an attempt adds at least before the plateau."""

    def chances(self, rng: np.random.Generator) -> np.ndarray:
        """[Q]."""
        if self.concentration is None:
            return np.full(self.tasks, self.mean)
        a = self.mean * self.concentration
        return rng.beta(a, self.concentration - a, self.tasks)

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        exact = 1 - (1 - solution["chances"][:, None]) ** np.arange(1, 100 * self.beyond)
        truth, predicted = exact.mean(0), solution["curve"]
        off = np.log2(plateau(predicted, self.gain) / plateau(truth, self.gain))
        at = self.beyond - 1
        return {"accuracy": float(1 - abs(predicted[at] - truth[at])), "octaves": float(abs(off))}


def plateau(coverage: np.ndarray, gain: float) -> int:
    """N* for the coverage at 1, 2, ...: after it no attempt adds `gain`."""
    return int((np.diff(coverage) >= gain).sum()) + 1


def passed(right: np.ndarray, tried: int, k: int) -> float:
    """The mean over tasks of pass@k without bias (`stats.pass_at_k`), from how many of the attempts at each were right."""
    i = np.arange(k)
    missed = np.clip(tried - right[:, None] - i, 0, None) / (tried - i)
    return float(1 - missed.prod(1).mean())


class Extrapolated(ExactMethod[Attempted]):
    """More attempts at every task in each iteration, and a law fitted to coverage by few of them."""

    law: Law = MixedGeometric()
    """Of coverage by attempts."""
    attempts: Count = 8
    """At each task in an iteration."""

    def start(self, problem: Attempted, rng: np.random.Generator) -> State:
        if self.attempts < problem.few:
            raise ConfigError(f"coverage by {problem.few} attempts needs as many in an iteration, got {self.attempts}")
        chances = problem.chances(rng)
        right = rng.binomial(self.attempts, chances).astype(float)
        return self._fitted(problem, {"chances": chances, "right": right, "tried": np.array(self.attempts)})

    def step(self, problem: Attempted, state: State, rng: np.random.Generator) -> State:
        right = state["right"] + rng.binomial(self.attempts, state["chances"])
        return self._fitted(problem, {**state, "right": right, "tried": state["tried"] + self.attempts})

    def _fitted(self, problem: Attempted, state: State) -> State:
        few = np.arange(1, problem.few + 1)
        covered = [passed(state["right"], int(state["tried"]), int(k)) for k in few]
        found = fit(self.law, few, covered, resamples=2)
        return {**state, "curve": found.predict(np.arange(1, 100 * problem.beyond)).mean}


RECIPE = ExactRecipe(name="ttspm/exact", problem=Attempted(concentration=1.0), method=Extrapolated(), iterations=4)
ALIKE = Attempted()
_one = {"law": Geometric()}

CLAIM = Claim(
    name="ttspm/exact",
    paper="arXiv 2505.20522, section 3 (the closed form); that it needs chances that differ is ours",
    statement="From at most 8 attempts a task, coverage at 64 is predicted; where tasks differ in difficulty, by the Beta "
    "form and not by one chance for all.",
    recipe=RECIPE,
    arms={
        "beta": RECIPE,
        "one_chance": RECIPE.replace(method=_one),
        "alike_beta": RECIPE.replace(problem=ALIKE),
        "alike_one_chance": RECIPE.replace(problem=ALIKE, method=_one),
    },
    measure="accuracy",
    expected=Ordering(relations=("beta > one_chance by 0.05",)),
    # tasks of one chance are what the closed form is about
    control=Ordering(relations=("alike_beta > alike_one_chance by 0.01",)),
    reported=Ordering(relations=("one_chance > beta in octaves", "one_chance > alike_one_chance in octaves")),
    seeds=SEEDS,
)

FINDING = (
    "The paper's closed form is the arm that loses here: the winner is a Beta law of our own, fitted to chances "
    "that were drawn from a Beta."
)

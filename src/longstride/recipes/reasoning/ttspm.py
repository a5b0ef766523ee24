"""TTSPM: coverage by attempts in closed form, and where it saturates. Wang et al., 2025, "Scaling over Scaling: Exploring
Test-Time Scaling Plateau in Large Reasoning Models", arXiv 2505.20522.

N parallel samples, and N rounds of rethinking until the first success, cover F(N) = F_max (1 - (1 - p)^N). One more
attempt adds F_max p (1 - p)^N, so what it adds falls below eps at

    N* = ceil(ln(eps / (F_max p)) / ln(1 - p))

One p for all tasks is the assumption. Where tasks differ in difficulty, the easy ones are solved first and the curve
bends early: fitted at few attempts, it promises a plateau that is not there. Chances drawn from Beta(a, b) have the
coverage 1 - B(a, b + N) / B(a, b), which is as easy to fit.

| place | choice | paper (R1-Distill-Qwen 1.5B and 7B; AIME, MATH-500, GPQA) | here |
|---|---|---|---|
| problem | tasks | benchmarks, difficulty as it is | 300 tasks of chances Beta(0.15, 0.85), or of 0.15 each |
| roll out | attempts | up to 64 | 8 a task and iteration |
| measure | F(N), N <= 8 | hit at N | pass@N without bias, from all attempts so far |
| fit | `Geometric` | F_max, p by least squares | the same; `MixedGeometric` beside it |
| predict | F(64), N* at eps = 0.002 | N* against the plateau seen | both against the exact ones |

Read as: abstract, summaries and the specification.

Deviations: attempts are draws of a known chance, and the best of
them is chosen without error, so the answers of no model are looked at; the Beta form is not the paper's; eps is ours.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Positive
from longstride.recipes.setups.arms import SEEDS, Chance
from longstride.run.exact import ExactMethod, ExactProblem, ExactRecipe, State
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


class Extrapolated(ExactMethod):
    """More attempts at every task in each iteration, and a law fitted to coverage by few of them."""

    law: Law = MixedGeometric()
    """Of coverage by attempts."""
    attempts: Count = 8
    """At each task in an iteration."""

    def start(self, problem: Any, rng: np.random.Generator) -> State:
        if not isinstance(problem, Attempted):
            raise ConfigError(f"expected a problem of type attempted, got {type(problem).type_name()}")
        if self.attempts < problem.few:
            raise ConfigError(f"coverage by {problem.few} attempts needs as many in an iteration, got {self.attempts}")
        chances = problem.chances(rng)
        right = rng.binomial(self.attempts, chances).astype(float)
        return self._fitted(problem, {"chances": chances, "right": right, "tried": np.array(self.attempts)})

    def step(self, problem: Any, state: State, rng: np.random.Generator) -> State:
        right = state["right"] + rng.binomial(self.attempts, state["chances"])
        return self._fitted(problem, {**state, "right": right, "tried": state["tried"] + self.attempts})

    def _fitted(self, problem: Attempted, state: State) -> State:
        few = np.arange(1, problem.few + 1)
        covered = [passed(state["right"], int(state["tried"]), int(k)) for k in few]
        found = fit(self.law, few, covered, resamples=2)
        return {**state, "curve": found.predict(np.arange(1, 100 * problem.beyond)).mean}


RECIPE = ExactRecipe(name="ttspm", problem=Attempted(concentration=1.0), method=Extrapolated(), iterations=4)
ALIKE = Attempted()
_one = {"law": Geometric()}

CLAIM = Claim(
    name="ttspm",
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

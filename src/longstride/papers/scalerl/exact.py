"""ScaleRL on problems whose success is computed: half a run, fitted to predict its end."""

from statistics import NormalDist
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count
from longstride.exact.experiment import ExactRecipe, State
from longstride.exact.forecasts import forecast
from longstride.exact.sharing import Shared, Sharing, policy
from longstride.scaling import Law, Power, Sigmoid
from longstride.stats import Ordering

LONGEST = 1000
"""Iterations of which success is kept."""
SKIPPED = 0.05
"""Part of a run that is not fitted."""


class Forecast(Sharing):
    """Problems, and the prediction of a run's last success from its first part. Measures besides those of `Sharing`:
    `accuracy`, `within`, `refused` of the prediction (see `exact.forecasts`)."""

    law: Law = Sigmoid()
    """Of success by compute."""
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Part of the run that the law is fitted to."""
    attempts: Count = 16
    """Answers to each problem that a measurement counts."""

    def measures(self, solution: Any) -> dict[str, float]:
        done, curve = int(solution["iteration"]), solution["curve"]
        seen = np.arange(int(SKIPPED * done) + 1, int(self.share * done) + 1)
        end = float(curve[done])
        return super().measures(solution) | forecast(self.law, seen, curve[seen], max(done, 1), end, along=True)


class Watched(Shared[Forecast]):
    """Group-relative policy gradient that keeps the success measured after each iteration, on answers sampled for it."""

    def start(self, problem: Forecast, rng: np.random.Generator) -> State:
        return super().start(problem, rng) | {"iteration": np.zeros(()), "curve": np.zeros(LONGEST + 1)}

    def step(self, problem: Forecast, state: State, rng: np.random.Generator) -> State:
        after = super().step(problem, state, rng)
        done = int(state["iteration"]) + 1
        if done > LONGEST:
            raise ConfigError(f"success of {LONGEST} iterations is kept; ask for no more")
        every = np.arange(problem.problems)
        p = policy(after, every)[every, state["right"].astype(int)].clip(0, 1)
        curve = state["curve"].copy()
        curve[done] = rng.binomial(problem.attempts, p).mean() / problem.attempts
        return after | {"iteration": np.array(float(done)), "curve": curve}


def spread(count: int, median: float, deviation: float) -> tuple[float, ...]:
    """Chances at evenly spaced quantiles of a normal distribution of their logarithm."""
    quantiles = [NormalDist(np.log(median), deviation).inv_cdf((k + 0.5) / count) for k in range(count)]
    return tuple(float(f"{min(0.9, np.exp(q)):.3g}") for q in quantiles)


RECIPE = ExactRecipe(
    name="scalerl/exact",
    problem=Forecast(problems=200, chances=spread(40, 0.02, 1.0) + (1e-9,) * 10, features=0),
    method=Watched(rollouts=16, batch=100, budget=1600, rate=20.0),
    iterations=120,
    every=24,
)

_power = {"law": Power()}
_early = {"share": 0.1}

CLAIM = Claim(
    name="scalerl/exact",
    paper="arXiv 2510.13786, section 2.1 and appendix A.4",
    statement="The first half of a run, fitted by a sigmoid, predicts its end better than fitted by a power law.",
    recipe=RECIPE,
    arms={
        "sigmoid": RECIPE,
        "power": RECIPE.replace(problem=_power),
        "early_sigmoid": RECIPE.replace(problem=_early),
        "early_power": RECIPE.replace(problem=_early | _power),
    },
    measure="accuracy",
    expected=Ordering(relations=("sigmoid > power by 0.02",)),
    # before the midpoint nothing shows that the curve will bend
    control=Ordering(relations=("early_sigmoid > early_power by 0.02",)),
    reported=Ordering(relations=("early_sigmoid > sigmoid by 0.5 in refused", "sigmoid > power by 0.2 in within")),
    seeds=tuple(range(200, 240)),
)

FINDING = (
    "The world is drawn so that success is an S in the logarithm of compute: with difficulty twice as wide the "
    "lead was -0.008, with easier problems 0.023."
)

"""ScaleRL: success by compute is a sigmoid, so the first half of a run predicts its end. Khatri et al., 2025, "The Art
of Scaling Reinforcement Learning Compute for LLMs", arXiv 2510.13786.

    success(C) = start + (asymptote - start) / (1 + (midpoint / C)^exponent)

A recipe is judged by its asymptote and by how fast it gets there, before the compute is spent. Points before the
midpoint settle neither.

| place | choice | paper (Llama 3 8B and Scout, math) | here |
|---|---|---|---|
| problem | difficulty | Polaris-53K | 160 problems, chances spread evenly in a normal distribution of their logarithm, and 40 that cannot be solved |
| credit | group-relative | deviation of the batch, 16 rollouts, groups without variance dropped | deviation of the group, 16 rollouts, the same |
| update | policy gradient | CISPO on samples 8 versions old | one step a batch, fresh samples |
| measure | held-out success | mean of 16 rollouts on 1,000 problems | 16 rollouts of every problem |
| fit | `Sigmoid` | without the first 3 % of compute; grid over A and C_mid, then B | without the first 5 %, by variable projection |
| predict | the end from the first half | 100,000 GPU hours from 50,000 | iteration 120 from 60 |

Read as: summaries of the paper and the specification.

Deviations: answers are enumerable (`setups.problems`), problems
share no parameters, all iterations cost the same, and none of the recipe's details (PipelineRL, CISPO, precision of
logits, no-positive-resampling, interruptions) is there: which of them move the asymptote is not shown.

Why a sigmoid: a problem of chance p is solved once about 1 / p rollouts were spent on it, so success by the logarithm of
compute is the distribution of the logarithm of difficulty. Where that is bell-shaped, success is S-shaped; a sigmoid
follows its mean over 40 runs to a quarter of a point, and so predicts the mean end to a quarter of a point.

Why a band is too narrow: what a run happens to solve early shifts all that is measured after it, so the errors along a
run are correlated (0.8 from one measurement to the next, 0.5 over five). Taken as independent, the band held the end in
17 of 40 runs; with the correlation that is likeliest (`scaling.noise`) it holds it in four of five (`within`). Half a
run is a few correlation lengths, too few to say how long they are. What a wrong law misses looks like such errors too, so
the power law's band is wide enough to hold every end.
"""

from statistics import NormalDist
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count
from longstride.recipes.setups.forecasts import forecast
from longstride.recipes.setups.problems import Sampled, Sharing, policy
from longstride.run.exact import ExactRecipe, State
from longstride.scaling import Law, Power, Sigmoid
from longstride.stats import Ordering

LONGEST = 1000
"""Iterations of which success is kept."""
SKIPPED = 0.05
"""Part of a run that is not fitted."""


class Forecast(Sharing):
    """Problems, and the prediction of a run's last success from its first part. Measures besides those of `Sharing`:
    `accuracy`, `within`, `refused` of the prediction (see `setups.forecasts`)."""

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


class Watched(Sampled):
    """Group-relative policy gradient that keeps the success measured after each iteration, on answers sampled for it."""

    def start(self, problem: Any, rng: np.random.Generator) -> State:
        if not isinstance(problem, Forecast):
            raise ConfigError(f"expected a problem of type forecast, got {type(problem).type_name()}")
        return super().start(problem, rng) | {"iteration": np.zeros(()), "curve": np.zeros(LONGEST + 1)}

    def step(self, problem: Any, state: State, rng: np.random.Generator) -> State:
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
    name="scalerl",
    problem=Forecast(problems=200, chances=spread(40, 0.02, 1.0) + (1e-9,) * 10, features=0),
    method=Watched(rollouts=16, batch=100, budget=1600, rate=20.0),
    iterations=120,
    every=24,
)

_power = {"law": Power()}
_early = {"share": 0.1}

CLAIM = Claim(
    name="scalerl",
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

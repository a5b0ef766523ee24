"""Which strategy a policy and a scorer want. Liu et al., 2025, "Can 1B LLM Surpass 405B LLM? Rethinking Compute-Optimal
Test-Time Scaling", arXiv 2502.06703.

A strategy that is chosen with one scorer need not serve another: a beam follows its scorer into its errors, a vote does
without. So the choice is conditioned on the scorer, theta*(policy, scorer, budget), and not on the budget alone.

| place | choice | paper | here |
|---|---|---|---|
| policy | steps | Llama 3 and Qwen2.5, 0.5B to 72B | skill 0 and 1: 0.1 and 0.39 of the tasks in one go |
| score | scorer | seven process reward models | two: noisy; misled, one that likes an error for two steps |
| search | strategies | best of n, beam of width 4, DVTS | the same, by score and weighted, and a beam of width 2 |
| choice | `ChosenByLevel` | by difficulty, in absolute bins | by policy and scorer; tasks are of one difficulty |

Deviations: an exact world; the choice is made on one half of the tasks and tested on the other. That a small model passes
one four hundred times as large is not shown. Read as: the specification and the abstract.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from longstride.claims.claim import Claim
from longstride.envs.exact.steps import Model, StepScorer
from longstride.recipes.setups import arms, steps
from longstride.recipes.setups.steps import ChosenByLevel, Solver, StepTasks
from longstride.stats import Ordering
from longstride.strategies.search import Beam, BestOf


class Pairings(StepTasks):
    """Tasks of each level for every pair of a policy and a scorer; a pair is measured like a level, scorers changing
    faster than policies and levels fastest."""

    models: Annotated[tuple[Model, ...], Field(min_length=1)] = (Model(), Model(skill=1.0))
    scorers: Annotated[tuple[StepScorer, ...], Field(min_length=1)] = (
        StepScorer(noise=6.0),
        StepScorer(noise=1.0, lag=2, lure=1.0),
    )

    @property
    def kinds(self) -> int:
        return len(self.models) * len(self.scorers) * len(self.levels)

    def solver(self, level: int, rng: np.random.Generator) -> Solver:
        shape = len(self.models), len(self.scorers), len(self.levels)
        m, s, k = np.unravel_index(level, shape)
        return Solver(self.world, self.levels[k], self.models[m], self.scorers[s], rng)


RECIPE = steps.recipe(
    "scorer_aware",
    Pairings(levels=(0.1,)),
    ChosenByLevel(
        strategies=(
            BestOf(n=16, by="weighted"),
            BestOf(n=16),
            Beam(n=16, width=2, by="weighted"),
            Beam(n=16, width=4),
            Beam(n=16, width=4, diverse=True, by="weighted"),
        )
    ),
)
_one = {"by_level": False}
_exact = {"scorers": (StepScorer(),)}

CLAIM = Claim(
    name="scorer_aware",
    paper="arXiv 2502.06703, section 3.1",
    statement="A strategy chosen for each policy and scorer solves more than one for all of them.",
    recipe=RECIPE,
    arms={
        "by_pair": RECIPE,
        "one_for_all": RECIPE.replace(method=_one),
        "exact_by_pair": RECIPE.replace(problem=_exact),
        "exact_one_for_all": RECIPE.replace(problem=_exact, method=_one),
    },
    expected=Ordering(relations=("by_pair > one_for_all by 0.03",)),
    # one strategy is the best for both policies where the scorer knows
    control=Ordering(relations=("exact_by_pair > exact_one_for_all by 0.01",)),
    seeds=arms.SEEDS,
)

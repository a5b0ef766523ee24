"""The choice of a strategy by policy and scorer, on tasks that are solved step by step."""

from typing import Annotated

import numpy as np
from pydantic import Field

from longstride.claims.claim import Claim
from longstride.exact.answers import SEEDS
from longstride.exact.experiment import recipe
from longstride.exact.steps import ChosenByLevel, StepSolver, StepTasks
from longstride.exact.worlds.steps import Model
from longstride.rewards.simulated import StepScorer
from longstride.stats import Ordering
from longstride.strategies.search import Beam, Independent


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

    def solver(self, level: int, rng: np.random.Generator) -> StepSolver:
        shape = len(self.models), len(self.scorers), len(self.levels)
        m, s, k = np.unravel_index(level, shape)
        return StepSolver(self.world, self.levels[k], self.models[m], self.scorers[s], rng)


RECIPE = recipe(
    "scorer_aware/exact",
    Pairings(levels=(0.1,)),
    ChosenByLevel(
        strategies=(
            Independent(n=16, by="weighted"),
            Independent(n=16),
            Beam(n=16, width=2, by="weighted"),
            Beam(n=16, width=4),
            Beam(n=16, width=4, diverse=True, by="weighted"),
        )
    ),
    iterations=10,
)
_one = {"by_level": False}
_exact = {"scorers": (StepScorer(),)}

CLAIM = Claim(
    name="scorer_aware/exact",
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
    seeds=SEEDS,
)

"""The choice of a strategy by policy and scorer, on tasks that are solved step by step."""

from functools import cached_property
from typing import Annotated

import numpy as np
from pydantic import Field

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Positive
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
    trust: Positive = 1.0
    """Factor of the log-odds of all scorers, beside their own."""

    @property
    def kinds(self) -> int:
        return len(self.models) * len(self.scorers) * len(self.levels)

    @cached_property
    def trusted(self) -> tuple[StepScorer, ...]:
        """The scorers, with the trust that all have in common."""
        return tuple(scorer.replace(trust=self.trust * scorer.trust) for scorer in self.scorers)

    def solver(self, level: int, rng: np.random.Generator) -> StepSolver:
        shape = len(self.models), len(self.scorers), len(self.levels)
        m, s, k = np.unravel_index(level, shape)
        return StepSolver(self.world, self.levels[k], self.models[m], self.trusted[s], rng)


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
    iterations=6,
)
_one = {"by_level": False}
_scorers = {
    "alike": (StepScorer(noise=5.0), StepScorer(noise=5.0)),
    # less noisy than that by half of the way, and less misled than any that is drawn
    "near": (StepScorer(noise=5.0), StepScorer(noise=2.4, lag=1, lure=0.4)),
}
_nearer = {name: RECIPE.replace(problem={"scorers": of}) for name, of in _scorers.items()}

CLAIM = Claim(
    name="scorer_aware/exact",
    paper="arXiv 2502.06703, section 3.1",
    statement="A strategy chosen for each policy and scorer solves more than one for all of them, of as many tokens, each with "
    "votes that trust the scorers as much as is best for it, in most of the worlds that are drawn.",
    recipe=RECIPE,
    arms={
        "by_pair": RECIPE,
        "one_for_all": RECIPE.replace(method=_one),
        **{f"{name}_by_pair": arm for name, arm in _nearer.items()},
        **{f"{name}_one_for_all": arm.replace(method=_one) for name, arm in _nearer.items()},
    },
    expected=Ordering(relations=("by_pair > one_for_all by 0.03",)),
    # of scorers that are alike only policies differ; the more scorers differ, the less one strategy is best for all
    dose=(*(f"{name}_by_pair > {name}_one_for_all" for name in _scorers), "by_pair > one_for_all"),
    worlds={
        "problem.levels": Between(low=0.05, high=0.2, log=True, shape=(1,)),
        "problem.world.length": Between(low=3, high=12, log=True),
        "problem.models.1.skill": Between(low=0.5, high=2.0, log=True),
        "problem.scorers.0.noise": Between(low=3.0, high=12.0, log=True),
        "problem.scorers.1.noise": Between(low=0.5, high=2.0, log=True),
        "problem.scorers.1.lag": Between(low=1, high=4, log=True),
        "problem.scorers.1.lure": Between(low=0.5, high=2.0, log=True),
    },
    # at the lowest a weighted vote counts heads, at the highest it takes the best score
    grid={"problem.trust": (0.2, 1.0, 5.0, 25.0, 125.0, 625.0)},
    cost="tokens",
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1024)),
)

FINDING = (
    "A strategy for each pair solves 0.52, one for all 0.47 (+0.05 [0.03, 0.08]), by 0.03 or more in 71 % of 24 worlds [51, 85]: where the "
    "model is weakest (levels below 0.07) there is no difference, and it grows with the lag of the misled scorer. That the scorers differ "
    "adds nothing that 24 worlds show (+0.01 [-0.03, 0.05]): with two scorers alike, where the policies alone differ, it is 0.04."
)

"""Scorer-aware choice: pairs of policies and scorers are told apart, and want different strategies."""

import numpy as np

from longstride.exact.steps import solved
from longstride.exact.worlds.steps import Model
from longstride.papers.scorer_aware.exact import RECIPE, Pairings
from longstride.rewards.simulated import StepScorer
from longstride.strategies.search import Beam, Independent, Search


def test_every_pair_of_a_policy_and_a_scorer_is_a_kind_of_its_own() -> None:
    problem = Pairings(
        levels=(0.1, 0.2), models=(Model(), Model(skill=1.0)), scorers=(StepScorer(), StepScorer(noise=1))
    )
    solvers = [problem.solver(k, np.random.default_rng(0)) for k in range(problem.kinds)]
    assert [s.model.skill for s in solvers] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert [s.scorer.noise for s in solvers] == [0, 0, 1, 1, 0, 0, 1, 1]
    assert solvers[0].chance == solvers[2].chance < solvers[1].chance == solvers[3].chance < solvers[5].chance


def test_a_beam_serves_a_weak_policy_whose_scorer_is_noisy_and_fails_where_the_scorer_is_misled() -> None:
    problem, rng = RECIPE.problem, np.random.default_rng(0)
    assert isinstance(problem, Pairings)

    def share(kind: int, search: Search) -> float:
        return sum(solved(problem, kind, search, rng)[0] for _ in range(60)) / 60

    beam, best = Beam(n=16, width=4), Independent(n=16, by="weighted")
    assert share(0, beam) > share(0, best) + 0.1 and share(3, best) > share(3, beam) + 0.2

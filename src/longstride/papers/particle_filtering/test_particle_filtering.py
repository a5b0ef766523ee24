"""Particle filtering: the arms of the claim spend the same tokens and differ as it says; why a beam loses."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from elsewhere import train_elsewhere
from helpers import rows_of

from longstride.core.generators import driven
from longstride.exact.steps import ROOT, StepTasks, solved
from longstride.papers.particle_filtering.exact import RECIPE
from longstride.rewards.simulated import StepScorer
from longstride.strategies.search import Beam, Partial, Particles, Search


def share(search: Search, tasks: int, **scorer: Any) -> tuple[float, int]:
    """Of tasks of the second level that are solved, and the tokens of one."""
    problem = RECIPE.replace(problem={"scorer": scorer}).problem
    assert isinstance(problem, StepTasks)
    found = [solved(problem, 1, search, np.random.default_rng(k)) for k in range(tasks)]
    assert len({ledger.tokens for _, ledger in found}) == 1
    return float(np.mean([right for right, _ in found])), found[0][1].tokens


def test_particles_solve_more_than_either_beam_where_the_scorer_sees_seldom_and_as_many_with_an_exact_one() -> None:
    particles, beam, wide = (share(s, 150) for s in (Particles(n=16), Beam(n=16, width=2), Beam(n=16, width=4)))
    assert particles[0] > max(beam[0], wide[0]) + 0.1 and particles[1] == beam[1] == wide[1] == 16 * 12 * 10
    assert share(Particles(n=16), 20, noise=0.0)[0] == share(Beam(n=16, width=2), 20, noise=0.0)[0] == 1


def ancestors(search: Search) -> int:
    """From how many partials of the second step the candidates descend, where the scorer says nothing."""
    problem = RECIPE.problem
    assert isinstance(problem, StepTasks)
    solver = problem.replace(scorer=StepScorer(noise=10.0)).solver(2, np.random.default_rng(0))
    first: dict[int, int] = {}

    def extend(partials: Sequence[Partial]) -> list[Partial]:
        made = solver(partials)
        for k, (p, q) in enumerate(zip(partials, made, strict=True)):
            first[id(q)] = first.get(id(p), k)
        kept.extend(made)  # an id is an object's own as long as it lives
        return made

    kept: list[Partial] = []
    return len({first[id(p)] for p in driven(search.run(ROOT, np.random.default_rng(0)), extend)})


def test_where_the_scorer_says_next_to_nothing_a_beam_descends_from_one_partial_and_particles_from_many() -> None:
    assert ancestors(Beam(n=16, width=2)) == 1 and ancestors(Particles(n=16)) > 4


def test_a_model_and_tasks_of_ones_own_are_searched_by_settings_alone(tmp_path: Path) -> None:
    searches = [
        f'{{type="searched", mark="red", search={{type="{name}", n=3}}}}' for name in ("particles", "independent")
    ]
    run = train_elsewhere(
        "particle_filtering",
        tmp_path,
        "test_budget.turn_tokens=12",
        f'evaluation.strategies=[{{type="direct"}}, {", ".join(searches)}]',
    )
    direct, particles, vote = (row for row in rows_of(run, "eval") if row["iteration"] == 2)
    assert particles["strategy"] == "particles_3_by_score_guided_by_confidence_at_'red'"
    spent = [np.mean(row["measures"]["total_tokens"]) for row in (direct, particles, vote)]
    assert min(spent[1:]) > 2 * spent[0] and np.mean(particles["measures"]["steps"]) > 3

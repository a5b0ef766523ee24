"""Compute-optimal strategies with a language model: chosen by difficulty on one fold of the tasks, tested on the other.

`longstride eval compute_optimal model=MODEL tasks.type=SOURCE` chooses and tests on your own tasks; `evaluation.strategies`
has what there is to choose from, and `budget_tokens` what a task may take.
"""

from typing import Any

from longstride.claims.claim import Claim
from longstride.engines.base import Sampling
from longstride.envs.puzzles import ModularChain
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies import Strategy
from longstride.strategies.best_of import BestOf, Majority
from longstride.strategies.chosen import Chosen
from longstride.strategies.search import Beam, Independent, Particles
from longstride.strategies.searched import Confidence, Guide, Oracle, Searched


def strategies(guide: Guide, times: int = 1) -> tuple[Strategy, ...]:
    """Votes and searches under a guide, of sizes that take about as many tokens."""
    return (
        BestOf(attempts=10 * times, by=Majority()),
        Searched(search=Independent(n=10 * times, by="weighted"), guide=guide),
        Searched(search=Beam(n=8 * times, width=2), guide=guide),
        Searched(search=Beam(n=8 * times, width=4, by="weighted"), guide=guide),
        Searched(search=Particles(n=9 * times), guide=guide),
    )


def chosen(guide: Guide, **changes: Any) -> tuple[Chosen, ...]:
    """By difficulty, by what the guide makes of four answers, and one for all."""
    by_difficulty = Chosen(strategies=strategies(guide), **changes)
    return (
        by_difficulty,
        by_difficulty.replace(by_difficulty=False),
        by_difficulty.replace(predicted_by=guide),
    )


RECIPE = puzzles.tested(
    "compute_optimal",
    chosen(Confidence()),
    tasks=ModularChain(),
    evaluation={"tasks": 600, "sampling": Sampling(), "start": False},  # nothing is trained, so the end says the same
)


ARM = RECIPE.replace(tasks=ModularChain(lengths=(3, 5, 6)), evaluation={"tasks": 300})
"""Chains of lengths that the model was not taught: of those that it was, it solves nearly all, whatever plays them. In a look
at 120 tasks, before anything was tuned, a vote was best on the easy ones and a beam of two on the hard ones."""
_ALIKE = ModularChain(lengths=(5, 5, 5))


def _under(tested: Strategy, **changes: Any) -> Recipe:
    return ARM.replace(evaluation={"strategies": (tested,)}, **changes)


_by_difficulty, _for_all, _predicted = chosen(Oracle(noise=2.0))

CLAIM = Claim(
    name="compute_optimal",
    paper="arXiv 2408.03314, section 3.2 and 5.3",
    statement="A strategy for each difficulty, chosen on other tasks, solves more than one for all in the same tokens.",
    recipe=ARM,
    arms={
        "by_difficulty": _under(_by_difficulty),
        "one_for_all": _under(_for_all),
        "by_predicted": _under(_predicted),
        "alike_by_difficulty": _under(_by_difficulty, tasks=_ALIKE),
        "alike_one_for_all": _under(_for_all, tasks=_ALIKE),
    },
    expected=Ordering(relations=("by_difficulty > one_for_all by 0.02",)),
    # levels that do not differ
    control=Ordering(relations=("alike_by_difficulty > alike_one_for_all by 0.02",)),
    reported=Ordering(relations=("by_predicted > one_for_all",)),
    cost="total_tokens",
    tuning_seeds=(930, 931),
    grid={"evaluation.sampling.temperature": (0.2, 0.3, 0.45, 0.7, 1.0)},
    seeds=tuple(range(1100, 1112)),
)

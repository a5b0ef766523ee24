"""BFS-Prover with a language model on chains, which a verifier checks: best-first search over steps, and cloning of the
steps in the middle of what it found.

`longstride train bfs_prover model=MODEL tasks.type=SOURCE` is expert iteration on your own tasks; a step ends at
`imitation.demonstrations.strategy.mark`. `longstride eval RUN --strategy best-first guide.type=path_likelihood`
searches.
"""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import ModularChain
from longstride.methods import Mean, OnPolicy, Reinforce
from longstride.methods.cloning import FilteredBC
from longstride.run.filters import Filter, Novel, PerplexityBand
from longstride.run.imitation import Imitation, StrategySuccesses
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.search import BestFirst
from longstride.strategies.searched import Checked, PathLikelihood, Searched

SEARCH = Searched(
    search=BestFirst(expansions=24, width=4, accepted=1.0), guide=Checked(guide=PathLikelihood(alpha=1.0))
)
LOW, HIGH = 1.02, 1.13
"""Perplexity of a token: of the steps that lead to answers of the start a tenth is below 1.005, half below 1.09 and a
tenth above 1.12."""

RECIPE = puzzles.recipe(
    "bfs_prover",
    tasks=ModularChain(),
    iterations=12,
    # the policy's own answers beside those of its search: a few, for the rest is imitation
    episodes_per_iteration=32,
    replay=OnPolicy(),
    credit=FilteredBC(),
    loss=Reinforce(aggregation=Mean(over="token")),
    learner={"lr": 1e-4},
    imitation=Imitation(
        demonstrations=StrategySuccesses(strategy=SEARCH, filters=(Novel(), PerplexityBand(low=LOW, high=HIGH))),
        episodes=96,
    ),
    evaluation={"every": 4, "tasks": 300, "strategies": (Direct(), SEARCH)},
)

ARM = RECIPE.replace(iterations=6, evaluation={"every": 6, "tasks": 300})


def _filtered(*filters: Filter, of: Recipe = ARM) -> Recipe:
    return of.replace(imitation={"demonstrations": {"filters": filters}})


_alike = ARM.replace(tasks=ModularChain(lengths=(3, 3, 3)))

CLAIM = Claim(
    name="bfs_prover",
    paper="arXiv 2509.06493, tactic filtering",
    statement="A policy that clones its search without the steps of lowest and highest perplexity solves more than one "
    "that clones all steps.",
    recipe=ARM,
    arms={
        "both": ARM,
        "all": _filtered(Novel()),
        "low": _filtered(Novel(), PerplexityBand(low=LOW)),
        "high": _filtered(Novel(), PerplexityBand(high=HIGH)),
        "alike_both": _alike,
        "alike_all": _filtered(Novel(), of=_alike),
        # a rate that is not in the grid, so that it is not tuned: nothing is learned
        "untrained": ARM.replace(iterations=1, learner={"epochs": 0, "lr": 2e-4}, imitation=None),
    },
    expected=Ordering(relations=("both > all by 0.02",)),
    # chains of one length: steps differ less
    control=Ordering(relations=("alike_both > alike_all by 0.02",)),
    reported=Ordering(
        relations=("all > untrained", f"both@{SEARCH.name} > all@{SEARCH.name}", "low > all", "high > all")
    ),
    grid={"learner.lr": (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)},
    # as long as the whole, and evaluated under what is judged alone: a search of all tasks takes as long as training
    tuning={"evaluation.strategies": [Direct().as_data()]},
    tuning_seeds=(900, 901),
    cost="iterations",
    seeds=tuple(range(1100, 1110)),
)

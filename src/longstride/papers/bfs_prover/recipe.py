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
from longstride.strategies.searched import Checked, Guide, Oracle, PathLikelihood, Searched

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


def _searched(guide: Guide) -> Recipe:
    return ARM.replace(imitation={"demonstrations": {"strategy": SEARCH.replace(guide=Checked(guide=guide))}})


_sound, _noisy = _searched(Oracle()), _searched(Oracle(noise=8.0))
"""What is cloned by a search that is told which steps are right, and by one that is told next to nothing."""

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
        "sound_both": _sound,
        "sound_all": _filtered(Novel(), of=_sound),
        "noisy_both": _noisy,
        "noisy_all": _filtered(Novel(), of=_noisy),
        # a rate that is not in the grid, so that it is not tuned: nothing is learned
        "untrained": ARM.replace(iterations=1, learner={"epochs": 0, "lr": 2e-4}, imitation=None),
    },
    expected=Ordering(relations=("both > all by 0.02",)),
    # of the steps that the start's searches find, .2 %, 1.0 % and 2.3 % are wrong and led to a right answer by chance
    dose=("sound_both > sound_all", "both > all", "noisy_both > noisy_all"),
    reported=Ordering(
        relations=("all > untrained", f"both@{SEARCH.name} > all@{SEARCH.name}", "low > all", "high > all")
    ),
    grid={"learner.lr": (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)},
    # as long as the whole, and evaluated under what is judged alone: a search of all tasks takes as long as training
    tuning={"evaluation.strategies": [Direct().as_data()]},
    tuning_seeds=(900, 901),
    cost="iterations",
    seeds=tuple(range(1100, 1124)),
)

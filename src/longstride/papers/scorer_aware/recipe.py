"""The choice of a search by scorer, with a language model: chosen on one fold of the tasks, tested on the other.

`longstride eval scorer_aware model=MODEL tasks.type=SOURCE evaluation.strategies.0.guides.1.guide.judge.run=JUDGE` chooses and
tests on your own tasks (the same of the second strategy, which it is compared with); `searches` has what there is to choose from.
"""

from longstride.claims.claim import Claim
from longstride.engines.base import Sampling
from longstride.envs.puzzles import ModularChain
from longstride.papers.scorer_aware.method import ChosenByScorer, WholeSolutions
from longstride.rewards.scorers import Generative, RunJudge
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.stats import Ordering
from longstride.strategies.search import Beam, Independent
from longstride.strategies.searched import Asked, Confidence, Oracle

SEARCHES = (
    Independent(n=15, by="weighted"),
    Independent(n=15),
    Beam(n=8, width=4),
    Beam(n=8, width=4, diverse=True, by="weighted"),
)
"""Those of the paper, of sizes that take about as many tokens."""
JUDGE = WholeSolutions(guide=Asked(scorer=Generative(reasons=0), judge=RunJudge(run="base-judge")))
"""A judge that was trained on whole solutions."""
BY_SCORER = ChosenByScorer(guides=(Confidence(), JUDGE), searches=SEARCHES)

RECIPE = puzzles.tested(
    "scorer_aware",
    (BY_SCORER, BY_SCORER.replace(aware=False)),
    tasks=ModularChain(),
    evaluation={"tasks": 120, "sampling": Sampling(), "start": False},  # nothing is trained, so the end says the same
)


ARM = RECIPE.replace(tasks=ModularChain(lengths=(3, 5, 6)))
"""Chains of lengths that the model was not taught: of those that it was, it solves nearly all, whatever plays them."""


def _of(strategy: ChosenByScorer) -> Recipe:
    return ARM.replace(evaluation={"strategies": (strategy,)})


_alike = BY_SCORER.replace(guides=(Oracle(noise=2.0), Oracle(noise=3.0)))

CLAIM = Claim(
    name="scorer_aware",
    paper="arXiv 2502.06703, section 3.1",
    statement="A search chosen for each scorer, on other tasks, solves more than one search for all scorers.",
    recipe=ARM,
    arms={
        "by_scorer": _of(BY_SCORER),
        "for_all": _of(BY_SCORER.replace(aware=False)),
        "alike_by_scorer": _of(_alike),
        "alike_for_all": _of(_alike.replace(aware=False)),
    },
    measure="solved",
    expected=Ordering(relations=("by_scorer > for_all by 0.02",)),
    # scorers that both see every step serve the same search
    control=Ordering(relations=("alike_by_scorer > alike_for_all by 0.02",)),
    seeds=tuple(range(360, 384)),
    tuning_seeds=(930, 931),
    grid={"evaluation.sampling.temperature": (0.2, 0.3, 0.45, 0.7, 1.0)},
    cost="total_tokens",
)

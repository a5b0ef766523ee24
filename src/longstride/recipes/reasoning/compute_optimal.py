"""Compute-optimal test-time compute. Snell et al., 2024, "Scaling LLM Test-Time Compute Optimally can be More Effective
than Scaling Model Parameters", arXiv 2408.03314.

No way to spend a budget is best for all tasks. Where a model is often right, its answers agree, and a vote needs no
scorer; where it is rarely right, the vote is wrong, and only a search that a scorer leads finds anything. So difficulty
decides the strategy: it is chosen by level on one half of the tasks and tested on the other, and the other way round.

| place | choice | paper | here |
|---|---|---|---|
| tasks | difficulty | quintiles of pass@1, of 2,048 samples or by the scorer | four levels, known |
| policy | steps | PaLM 2-S* on MATH | 6 steps, right with a known chance |
| score | scorer | a process reward model from roll-outs | the label with unbiased noise, six times as large |
| search | strategies | best of n weighted, beam with M of 4 and sqrt(n), lookahead; revisions | best of n and beams, by score and weighted |
| choice | `ChosenByLevel` | two folds | two folds |

Deviations: an exact world instead of a language model; levels are known, so nothing is spent on finding out about them;
revisions are `revise`'s, and the comparison with a larger model at equal FLOPs is left out. Lookahead was tried and is
best at no level here. Read as: the specification.
"""

from longstride.claims.claim import Claim
from longstride.envs.exact.steps import StepScorer
from longstride.recipes.setups import arms, steps
from longstride.recipes.setups.steps import ChosenByLevel, StepTasks
from longstride.stats import Ordering
from longstride.strategies.search import Beam, BestOf, Search

STRATEGIES: dict[str, Search] = {
    "best_of_weighted": BestOf(n=16, by="weighted"),
    "best_of": BestOf(n=16),
    "beam_2_weighted": Beam(n=16, width=2, by="weighted"),
    "beam_4": Beam(n=16, width=4),
}
RECIPE = steps.recipe(
    "compute_optimal",
    StepTasks(levels=(0.03, 0.1, 0.4, 0.6), scorer=StepScorer(noise=6.0)),
    ChosenByLevel(strategies=tuple(STRATEGIES.values())),
)
_one = {"by_level": False}
_alike = {"levels": (0.3, 0.3)}

CLAIM = Claim(
    name="compute_optimal",
    paper="arXiv 2408.03314, section 3.2 and 5.3",
    statement="A strategy for each difficulty, chosen on other tasks, solves more than one for all.",
    recipe=RECIPE,
    arms={
        "by_difficulty": RECIPE,
        "one_for_all": RECIPE.replace(method=_one),
        "beam_4": RECIPE.replace(method={"strategies": (STRATEGIES["beam_4"],), "tasks": 8}),
        "alike_by_difficulty": RECIPE.replace(problem=_alike),
        "alike_one_for_all": RECIPE.replace(problem=_alike, method=_one),
    },
    expected=Ordering(relations=("by_difficulty > one_for_all by 0.03",)),
    # levels that do not differ
    control=Ordering(relations=("alike_by_difficulty > alike_one_for_all by 0.02",)),
    # the best of the four on seeds 0 to 4
    reported=Ordering(relations=("by_difficulty > beam_4",)),
    seeds=arms.SEEDS,
)

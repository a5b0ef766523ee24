"""TTI's compute again, with a control that can fail: from short horizons on, further turns beat a majority; from long ones on they do not
(see `tti`).

`tti/tokens` found +.35 for further turns from eight turns on, and its control was void: where an episode ends on its first page further turns are
not taken, so both sides are read where nothing has been spent. Here the cause is taken away by degrees instead. A policy is tested from 24, 16 and 8
turns on: the fewer of its tasks a horizon cuts, the less is left for further turns to do, while a majority of attempts stays what it is.

From 24 turns on further turns take 7 tokens at most, so sides are compared within those; with more, a majority of four comes to .75 (461 tokens a
task), and turns to .71 (123).

Training, tasks, ways and how they are counted are those of `tti/tokens`, on fresh seeds; ways end at 48 turns, and at four attempts.
"""

from longstride.claims.claim import Claim
from longstride.papers.tti import tokens
from longstride.run.recipe import Recipe
from longstride.setups.sites import LONG, MEDIUM, SHORT
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.best_of import BestOf, Majority

WAYS = {
    "turns": tuple(Direct(turns=n) for n in (28, 32, 48)),
    "samples": tuple(BestOf(attempts=n, by=Majority()) for n in (2, 4)),
}


def _from(turns: int) -> Recipe:
    return tokens.RECIPE.replace(
        name="tti/spent",
        test_budget={"turns": turns},
        evaluation={"strategies": (Direct(), *(strategy for way in WAYS.values() for strategy in way))},
    )


RECIPE = _from(SHORT)

CLAIM = Claim(
    name="tti/spent",
    paper="arXiv 2506.07976, sections 1 and 3: interaction as a dimension of test-time scaling",
    statement="From eight turns on, tokens spent on further turns bring more success than as many spent on a majority of attempts, and the more so "
    "the shorter the horizon from which they are spent.",
    recipe=RECIPE,
    arms={"from_8": RECIPE, "from_16": _from(MEDIUM), "from_24": _from(LONG)},
    expected=Ordering(relations=("from_8@turns > from_8@samples by 0.1",)),
    # within 24 turns few episodes are cut, so there is little that further turns could do
    control=Ordering(relations=("from_24@turns > from_24@samples by 0.1",)),
    dose=tuple(f"from_{turns}@turns > from_{turns}@samples" for turns in (LONG, MEDIUM, SHORT)),
    ways={name: ("direct", *(strategy.name for strategy in way)) for name, way in WAYS.items()},
    cost="spent_tokens",
    equal_cost=True,
    along="spent_tokens",
    grid={"learner.lr": (3e-5, 6e-5, 1.25e-4, 2.5e-4, 5e-4)},
    tuning={"evaluation.strategies": [{"type": "direct"}], "episodes_per_iteration": 128},
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(520, 526)),
)

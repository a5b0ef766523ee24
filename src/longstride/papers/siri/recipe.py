"""SIRI on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import PPO, GroupRelative, Mean
from longstride.papers.siri.method import Cosine, Cyclic, Stair, StairCosine
from longstride.setups import puzzles
from longstride.setups.puzzles import ALIKE
from longstride.stats import Ordering
from longstride.strategies import Direct

LONG, SHORT, CYCLE = 128, 48, 12
"""Tokens of an answer at the two ends of a cycle, and its iterations."""

RECIPE = puzzles.recipe(
    "siri",
    iterations=3 * CYCLE,
    budget={"tokens": Cosine(high=LONG, low=SHORT, period=CYCLE)},
    credit=GroupRelative(),
    loss=PPO(clip_high=0.28, aggregation=Mean(over="token")),
    evaluation={"every": CYCLE // 2, "strategies": (Direct(), Direct(tokens=64))},
)


def _within(cycle: type[Cyclic]) -> dict[str, Cyclic]:
    """The change of the budget to a cycle of a claim's length."""
    return {"tokens": cycle(high=LONG, low=SHORT, period=8)}


ARM = puzzles.arm(RECIPE).replace(budget=_within(Cosine))

CLAIM = Claim(
    name="siri",
    paper="arXiv 2509.25176, abstract and figure 1",
    statement="A limit that goes down and up ends more accurate within few tokens than a constant long one, and more "
    "accurate with many than a constant short one.",
    recipe=ARM,
    arms={
        "siri": ARM,
        "stair": ARM.replace(budget=_within(Stair)),
        "stair_cosine": ARM.replace(budget=_within(StairCosine)),
        "long": ARM.replace(budget={"tokens": LONG}),
        "short": ARM.replace(budget={"tokens": SHORT}),
        "alike_siri": ARM.replace(tasks=ALIKE),
        "alike_long": ARM.replace(tasks=ALIKE, budget={"tokens": LONG}),
    },
    expected=Ordering(relations=("siri@direct_64_tokens > long@direct_64_tokens",)),
    # two steps need 20 tokens: no limit binds
    control=Ordering(relations=("alike_siri > alike_long by 0.03",)),
    reported=Ordering(relations=("siri > short",)),
)

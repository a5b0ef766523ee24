"""MiroThinker on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import PPO, GroupRelative
from longstride.papers.mirothinker.method import Formatted
from longstride.rollout.context import RecentObservations
from longstride.setups import sites
from longstride.setups.sites import SHEET
from longstride.stats import Ordering
from longstride.strategies import Direct

RECIPE = sites.recipe(
    "mirothinker",
    iterations=12,
    group_size=8,
    model="base-keep-last",
    context=RecentObservations(keep=5),
    reward=Formatted(),
    credit=GroupRelative(),
    loss=PPO(),
    evaluation={"every": 4, "strategies": tuple(Direct(turns=n) for n in (24, 12, 6))},
)

ARM = sites.arm(RECIPE, iterations=8, every=8)
_sheet = ARM.replace(tasks=SHEET)

CLAIM = Claim(
    name="mirothinker",
    paper="arXiv 2511.11793, on interactive scaling",
    statement="After reinforcement learning, success rises with the turns that an episode may take.",
    recipe=ARM,
    arms={"trained": ARM, "sheet": _sheet},
    expected=Ordering(relations=("trained > trained@direct_6_turns by 0.01",)),
    # on a sheet everything is on the first page: there is nothing that more turns could find
    control=Ordering(relations=("sheet > sheet@direct_6_turns by 0.01",)),
    reported=Ordering(relations=("trained > trained@direct_12_turns",)),
    seeds=tuple(range(100, 105)),
)

FINDING = "Turns are worth nearly as much before training (0.022) as after it (0.028)."

"""ScalingInter-RL on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import KL, PPO, GroupRelative, Mean
from longstride.papers.scaling_inter.method import StepSchedule
from longstride.setups import sites
from longstride.setups.sites import LONG, MEDIUM, SHEET, SHORT
from longstride.stats import Ordering

RECIPE = sites.recipe(
    "scaling_inter",
    iterations=24,
    group_size=8,
    budget={"turns": StepSchedule(steps=(SHORT, MEDIUM, LONG), every=8)},
    credit=GroupRelative(),
    loss=PPO(kl=KL(coefficient=1e-3), aggregation=Mean(over="token")),
)

ARM = sites.arm(RECIPE).replace(budget={"turns": StepSchedule(steps=(SHORT, MEDIUM, LONG), every=3)})

CLAIM = Claim(
    name="scaling_inter",
    paper="arXiv 2509.08755, table 1",
    statement="Growing the horizon in stages beats training at a fixed short horizon.",
    recipe=ARM,
    arms={
        "staged": ARM,
        "fixed_short": ARM.replace(budget={"turns": SHORT}),
        "fixed_long": ARM.replace(budget={"turns": LONG}),
        "sheet_staged": ARM.replace(tasks=SHEET),
        "sheet_fixed_short": ARM.replace(tasks=SHEET, budget={"turns": SHORT}),
    },
    expected=Ordering(relations=("staged > fixed_short by 0.02",)),
    # everything is on the first page of a sheet: there is nothing to explore, so the longer horizon must not pay
    control=Ordering(relations=("sheet_staged > sheet_fixed_short by 0.05",)),
    reported=Ordering(relations=("staged > fixed_long by 0.02",)),
    seeds=(0, 1, 2, 3, 4),
)

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

ARM = sites.arm(RECIPE, every=3).replace(budget={"turns": StepSchedule(steps=(SHORT, MEDIUM, LONG), every=3)})

# more iterations, for an iteration of short episodes has fewer environment steps
_short = {"budget": {"turns": SHORT}, "iterations": 15}

CLAIM = Claim(
    name="scaling_inter",
    paper="arXiv 2509.08755, table 1",
    statement="By equal environment steps, growing the horizon in stages beats training at a fixed short horizon.",
    recipe=ARM,
    arms={
        "staged": ARM,
        "fixed_short": ARM.replace(**_short),
        "fixed_long": ARM.replace(budget={"turns": LONG}),
        "sheet_staged": ARM.replace(tasks=SHEET),
        "sheet_fixed_short": ARM.replace(tasks=SHEET, **_short),
    },
    expected=Ordering(relations=("staged > fixed_short by 0.05",)),
    # everything is on the first page of a sheet: there is nothing to explore, so the longer horizon must not pay
    control=Ordering(relations=("sheet_staged > sheet_fixed_short by 0.05",)),
    reported=Ordering(relations=("staged > fixed_long by 0.02",)),
    seeds=tuple(range(1840, 1850)),
    tuning_seeds=(984, 985),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning={"iterations": 5, "evaluation.every": 5},
    cost="env_steps",
    equal_cost=True,
)

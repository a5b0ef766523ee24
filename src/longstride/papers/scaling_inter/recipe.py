"""ScalingInter-RL on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.methods import KL, PPO, GroupRelative, Mean
from longstride.papers.scaling_inter.method import StepSchedule
from longstride.setups import sites
from longstride.setups.sites import LONG, MEDIUM, SHORT
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
_fixed = {
    f"fixed_{turns}": ARM.replace(budget={"turns": turns}, iterations=iterations)
    for turns, iterations in ((SHORT // 2, 20), (SHORT, 15), (MEDIUM, 12))
}

CLAIM = Claim(
    name="scaling_inter",
    paper="arXiv 2509.08755, table 1",
    statement="By equal environment steps, growing the horizon in stages beats training at a fixed short horizon, and by the "
    "more the shorter that is.",
    recipe=ARM,
    arms={
        "staged": ARM,
        **_fixed,
    },
    expected=Ordering(relations=(f"staged > fixed_{SHORT} by 0.03",)),
    dose=tuple(f"staged > fixed_{turns}" for turns in (MEDIUM, SHORT, SHORT // 2)),
    seeds=tuple(range(1840, 1856)),
    tuning_seeds=(984, 985),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning={"iterations": 9, "evaluation.every": 9},
    cost="env_steps",
    equal_cost=True,
)

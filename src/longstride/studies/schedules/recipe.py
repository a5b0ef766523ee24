"""Schedules of the horizon on trails of pages, as arms of one claim.

All arms run the same iterations of as many episodes; `swept` has a fifth of these, `third` and `half` a third and a half, as a sweep of five, of
three and of two horizons leaves them. That is the dose: the more a sweep takes, the farther a schedule that needs none should be
ahead.

What it takes: 280 runs that tune, 24 of a pilot and 96 of eight seeds; about four and a half hours on two free cores. It has not been piloted and
is not frozen.
"""

from longstride.claims.claim import Claim
from longstride.curriculum import Fixed, Linear, Multiplicative, PerDifficulty, Schedule
from longstride.curriculum.schedules import StepList
from longstride.papers.tti import dial as tti
from longstride.rollout import Groups
from longstride.run.recipe import Recipe
from longstride.setups.dial import LONG, SHORT
from longstride.stats import Ordering
from longstride.studies.worth.method import Onward, Worth

SLOW = StepList(steps=((2, 8), (4, 16), (6, 24), (8, 32), (10, 40), (11, 48)))
SWEEP = (6, 8, 12, 20, 32)
"""Fixed horizons that a sweep tries."""
SCHEDULES: dict[str, Schedule] = {
    "slow": SLOW,
    "multiplicative": Multiplicative(start=SHORT, limit=LONG),
    "additive": Linear(start=SHORT, limit=LONG, interval=1, cap=11),
    "staged": StepList(steps=((4, SHORT), (8, 24), (9, LONG))),
    "by_difficulty": PerDifficulty(easy=Fixed(limit=10), medium=Fixed(limit=20), hard=Fixed(limit=30)),
    "worth": Worth(start=24, limit=LONG),
    "short": Fixed(limit=SHORT),
    "long": Fixed(limit=LONG),
}

RECIPE = tti.RECIPE.replace(
    name="schedules",
    tasks={"distances": (4, 28)},
    budget={"turns": SLOW},
    test_budget={"turns": Fixed(limit=32)},
    evaluation={"every": 3, "tasks": 200},
)


def under(recipe: Recipe, schedule: Schedule) -> Recipe:
    """A recipe under one of the schedules, with the second round that `Worth` reads where it is that."""
    sampler = Onward(share=0.25) if isinstance(schedule, Worth) else Groups()
    return recipe.replace(budget={"turns": schedule}, sampler=sampler)


def sweep_of(horizons: int) -> Recipe:
    """A fixed horizon with the episodes that a sweep of so many leaves to each."""
    return RECIPE.replace(budget={"turns": 12}, episodes_per_iteration=RECIPE.episodes_per_iteration // horizons)


SWEPT = {"best_fixed": sweep_of(1), "half": sweep_of(2), "third": sweep_of(3), "swept": sweep_of(5)}

CLAIM = Claim(
    name="schedules",
    paper="arXiv 2506.07976, section 5, and a question of our own",
    statement="Slow growth of the horizon ends with more success than the best fixed horizon of a sweep of five whose cost is counted, "
    "and the more the larger the sweep.",
    recipe=RECIPE,
    arms={name: under(RECIPE, schedule) for name, schedule in SCHEDULES.items()} | SWEPT,
    expected=Ordering(relations=("slow > swept by 0.03",)),
    dose=("slow > half", "slow > third", "slow > swept"),
    reported=Ordering(
        relations=(
            "slow > best_fixed",
            *(f"slow > {name}" for name in SCHEDULES if name != "slow"),
            "worth > best_fixed",
            "long > slow in wasted",
        )
    ),
    cost="iterations",
    grid={"learner.lr": (1.25e-4, 2.5e-4, 5e-4, 1e-3, 2e-3)} | {f"{name}: budget.turns": SWEEP for name in SWEPT},
    tuning={"iterations": 6, "evaluation.every": 6},
    tuning_seeds=(900, 901),
    seeds=tuple(range(330, 338)),
)

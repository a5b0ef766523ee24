"""BATS on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.curriculum.schedules import StepList
from longstride.methods import PPO, GroupRelative
from longstride.rollout.context import BudgetInView, FullHistory
from longstride.setups import sites
from longstride.setups.sites import SHEET
from longstride.stats import Ordering
from longstride.strategies import Direct

LIMITS = StepList(steps=tuple((i, (24, 12, 6)[i % 3]) for i in range(1, 13)))
"""Another one every iteration, for tasks of all kinds: it says how scarce turns are, and nothing of the task."""

RECIPE = sites.recipe(
    "bats",
    iterations=12,
    group_size=8,
    budget={"turns": LIMITS},
    context=BudgetInView(within=FullHistory(), words="{left} of {limit}"),
    credit=GroupRelative(),
    loss=PPO(),
    evaluation={"every": 4, "strategies": tuple(Direct(turns=n) for n in (6, 12, 24))},
)

ARM = sites.arm(RECIPE, iterations=8, every=2)
BLIND = {"context": FullHistory()}

CLAIM = Claim(
    name="bats",
    paper="arXiv 2511.17006, abstract; trained as in arXiv 2601.16486",
    statement="A policy that sees how many turns are left has more success within six turns than one that does not.",
    recipe=ARM,
    arms={
        "in_view": ARM,
        "blind": ARM.replace(**BLIND),
        "sheet_in_view": ARM.replace(tasks=SHEET),
        "sheet_blind": ARM.replace(tasks=SHEET, **BLIND),
    },
    expected=Ordering(relations=("in_view > blind by 0.03",)),
    # everything is on the first page of a sheet: no limit is ever near
    control=Ordering(relations=("sheet_in_view > sheet_blind by 0.03",)),
    reported=Ordering(relations=("in_view@direct_24_turns > blind@direct_24_turns", "blind > in_view in length")),
    seeds=tuple(range(300, 308)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (1e-4, 2e-4, 3e-4, 6e-4, 1e-3)},
    # ranked by what is judged: the first strategy
    tuning={"iterations": 4, "evaluation.every": 4, "evaluation.strategies": [Direct(turns=6).as_data()]},
    cost="env_steps",
    equal_cost=True,
)

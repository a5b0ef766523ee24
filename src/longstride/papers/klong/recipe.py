"""KLong on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.curriculum.schedules import StepList
from longstride.methods import PPO, GroupRelative
from longstride.papers.klong.method import OverlappingPieces
from longstride.setups import sites
from longstride.setups.sites import LONG, MEDIUM, SHEET, SHORT
from longstride.stats import Ordering

RECIPE = sites.recipe(
    "klong",
    iterations=16,
    group_size=8,
    budget={"turns": StepList(steps=((5, SHORT), (10, MEDIUM), (11, LONG)))},
    context=OverlappingPieces(most=512),
    credit=GroupRelative(),
    loss=PPO(),
)

ARM = sites.arm(RECIPE, iterations=9, every=3).replace(
    budget={"turns": StepList(steps=((3, SHORT), (6, MEDIUM), (7, LONG)))}
)
_SMALL = ARM.replace(context={"most": 160})
"""Prompts of 160 tokens: half of the demonstrations on the sites have more."""
_APART = _SMALL.replace(context={"early": 0, "overlap": 0})
_sheet = {"tasks": SHEET}

CLAIM = Claim(
    name="klong",
    paper="arXiv 2602.17547, abstract",
    statement="By equal environment steps and with prompts of 160 tokens, reinforcement learning adds more success to a policy that "
    "reads pieces of its episode which overlap than to one whose pieces do not.",
    recipe=_SMALL,
    arms={
        "pieces": _SMALL,
        "apart": _APART,
        "at_once": _SMALL.replace(budget={"turns": LONG}),
        "sheet_pieces": _SMALL.replace(**_sheet),
        "sheet_apart": _APART.replace(**_sheet),
    },
    measure="gained_success",
    expected=Ordering(relations=("pieces > apart by 0.03",)),
    # everything is on the first page of a sheet: there is nothing to remember
    control=Ordering(relations=("sheet_pieces > sheet_apart by 0.03",)),
    reported=Ordering(relations=("pieces > at_once",)),
    seeds=tuple(range(300, 308)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (5e-5, 1e-4, 3e-4, 6e-4, 1.2e-3)},
    tuning={"iterations": 4, "evaluation.every": 4},
    cost="env_steps",
    equal_cost=True,
    scale=(-1.0, 1.0),
)

"""KLong on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.curriculum.schedules import StepList
from longstride.methods import PPO, GroupRelative
from longstride.papers.klong.method import OverlappingPieces
from longstride.rollout.context import LatestObservation
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
_newest, _sheet = {"context": LatestObservation()}, {"tasks": SHEET}

CLAIM = Claim(
    name="klong",
    paper="arXiv 2602.17547, abstract",
    statement="By equal environment steps and with prompts of 512 tokens, a policy that reads overlapping pieces of its episode has more "
    "success than one that reads the newest page alone.",
    recipe=ARM,
    arms={
        "pieces": ARM,
        "newest": ARM.replace(**_newest),
        "at_once": ARM.replace(budget={"turns": LONG}),
        "sheet_pieces": ARM.replace(**_sheet),
        "sheet_newest": ARM.replace(**_sheet, **_newest),
    },
    expected=Ordering(relations=("pieces > newest by 0.03",)),
    # everything is on the first page of a sheet: there is nothing to remember
    control=Ordering(relations=("sheet_pieces > sheet_newest by 0.03",)),
    reported=Ordering(relations=("pieces > at_once",)),
    seeds=tuple(range(300, 308)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (5e-5, 1e-4, 3e-4, 6e-4, 1.2e-3)},
    tuning={"iterations": 4, "evaluation.every": 4},
    cost="env_steps",
    equal_cost=True,
)

"""The stages of `scaling_inter` on walks whose success is computed, at equal numbers of sampled turns.

A short horizon never sees what deep tasks need. A long one from the start spends its turns on wandering, and each
decision that matters is one among many. Stages learn first what is near, from short episodes.

| place | choice | `scaling_inter` | here |
|---|---|---|---|
| plan | `StepSchedule` | 8, 16, 24 turns, every 8 iterations | 10, 20, 40, every 8 |
| plan | groups of one task | 8 | 16 episodes, four tasks of 2 to 14 useful turns |
| credit | `GroupRelative` | (r - mean) / deviation | the same |
| update | `PPO` | clip 0.2, mean over tokens, KL 1e-3 to the start, two passes | the same, one step |

Deviations: an episode is a walk (`exact.walks.SearchWalk`); every arm stops learning when it has sampled 16,000 turns. That
a long horizon collapses, as the paper reports of large models, does not happen here: it is slower.
"""

from longstride.claims.claim import Claim
from longstride.curriculum import Fixed
from longstride.exact.answers import SEEDS
from longstride.exact.learner import recipe
from longstride.exact.walks import SearchWalk, Walked
from longstride.methods import KL, PPO, GroupRelative, Mean
from longstride.papers.scaling_inter.method import StepSchedule
from longstride.stats import Ordering

SHORT, MEDIUM, LONG = 10, 20, 40

RECIPE = recipe(
    "scaling_inter/exact",
    SearchWalk(depths=(2, 4, 8, 14), wastes=0.6, horizon=LONG),
    Walked(
        turns=StepSchedule(steps=(SHORT, MEDIUM, LONG), every=8),
        credit=GroupRelative(),
        loss=PPO(kl=KL(coefficient=1e-3), aggregation=Mean(over="token")),
        group=16,
        rate=8.0,
        most=16_000,
    ),
    iterations=60,
)

_short, _long = {"turns": Fixed(limit=SHORT)}, {"turns": Fixed(limit=LONG)}
_near = {"problem": {"depths": (1, 2), "wastes": 0.2}}

CLAIM = Claim(
    name="scaling_inter/exact",
    paper="arXiv 2509.08755, table 1",
    statement="By sampled turns, growing the horizon in stages ends with more success than a fixed long horizon, and "
    "than a fixed short one.",
    recipe=RECIPE,
    arms={
        "staged": RECIPE,
        "fixed_short": RECIPE.replace(method=_short),
        "fixed_long": RECIPE.replace(method=_long),
        "near_staged": RECIPE.replace(**_near),
        "near_fixed_long": RECIPE.replace(**_near, method=_long),
    },
    expected=Ordering(relations=("staged > fixed_long by 0.02",)),
    # where everything is near no horizon binds
    control=Ordering(relations=("near_staged > near_fixed_long by 0.02",)),
    reported=Ordering(relations=("staged > fixed_short",)),
    seeds=SEEDS,
)

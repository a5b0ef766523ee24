"""TTI mended at the size of the main job: growing, fixed and slowly growing horizons on the embedded sites (see `tti`).

`tti/mended` compared arms of 12 x 128 episodes, which end where there is little to order. Here an arm is what `make train` runs.

| arm | turns in training | in one run on seed 31, which only chose: supported success; environment steps |
|---|---|---|
| `growing` | 8, 16, 24 from iteration 3, as shipped | .64; 126,000 |
| `short` | 8 | .46; 68,000 |
| `long` | 24 | .65; 127,000 |
| `slow` | 8 for 6 iterations, 16 for 7, then 24 | .62; 96,000 |

Primary: growing over short, at equal environment steps. Reported: whether slow growth comes to what the long horizon comes to, not inferior by
0.03, with at most 0.8 of its environment steps; that is read from final values, which are kept beside those at equal steps. The control is the site on which everything stands on the first
page (`SHEET`): no horizon binds there, so growing must not beat short.

What it takes: arms of 20 x 512 need four and a half minutes on two free cores. Six arms and eight seeds 3.6 hours; the pilot 0.9; five rates on
two seeds, at 8 x 256 episodes, 0.9. Some five and a half hours in all. It has not been piloted and is not frozen.

Deviations: those of `tti`.
"""

from longstride.claims.claim import Claim
from longstride.curriculum import Fixed
from longstride.curriculum.schedules import StepList
from longstride.papers.tti import recipe as tti
from longstride.setups.sites import LONG, MEDIUM, SHEET, SHORT
from longstride.stats import Ordering

SLOW = {"turns": StepList(steps=((6, SHORT), (13, MEDIUM), (14, LONG)))}
FIXED_SHORT, FIXED_LONG = {"turns": Fixed(limit=SHORT)}, {"turns": Fixed(limit=LONG)}

RECIPE = tti.RECIPE.replace(name="tti/full", evaluation={"every": 4, "baselines": False, "tasks": 250})
_sheet = RECIPE.replace(tasks=SHEET)

CLAIM = Claim(
    name="tti/full",
    paper="arXiv 2506.07976, section 5 and table 1",
    statement="At the size of the main job a growing horizon beats the fixed short one that it begins with.",
    measure="supported",
    recipe=RECIPE,
    arms={
        "growing": RECIPE,
        "short": RECIPE.replace(budget=FIXED_SHORT),
        "long": RECIPE.replace(budget=FIXED_LONG),
        "slow": RECIPE.replace(budget=SLOW),
        "sheet_growing": _sheet,
        "sheet_short": _sheet.replace(budget=FIXED_SHORT),
    },
    expected=Ordering(relations=("growing > short by 0.05",)),
    control=Ordering(relations=("sheet_growing > sheet_short by 0.05",)),
    reported=Ordering(relations=("slow > long", "slow > short", "growing > long", "growing > short in success")),
    cost="env_steps",
    equal_cost=True,
    grid={"learner.lr": (1.25e-4, 2.5e-4, 5e-4, 1e-3, 2e-3)},
    tuning={"iterations": 8, "episodes_per_iteration": 256, "evaluation.every": 8},
    tuning_seeds=(900, 901),
    seeds=tuple(range(340, 348)),
)

"""TCOD in the other order: the student goes on from a demonstration, at first from its last turn (see `tcod`).

Wang et al. (2026, arXiv 2604.24005): near the end of what a teacher did, its student is where the teacher was. So the first turns of a
solution are taken for it, ever fewer of them, until it plays from the start.

| place | choice | released code (`tcod_b2f`) | here |
|---|---|---|---|
| plan | `BackToFront` | all but the last of an expert's actions, 1 fewer every 5 of 250 steps | all but the last of a shortest way, 4 fewer every iteration |
| plan | turns | 30, those that are taken included | 48, the same |
| credit, update | as `tcod` | as the other order | as `tcod` |

Deviations: those of `tcod`. The release drops an episode that the taken turns end; here the last turn is always left. Turns that are taken
cost no tokens, and count as steps of the environment, so what the claim holds equal is tokens.

The claim is not frozen and has not been run. On the seed on which the other order was looked at (900) the student goes from .15 to .945.
"""

from longstride.claims.claim import Claim
from longstride.curriculum import Fixed
from longstride.curriculum.schedules import Linear
from longstride.papers.tcod import recipe as tcod
from longstride.papers.tcod.method import BackToFront
from longstride.rollout import Groups
from longstride.setups.dial import LONG
from longstride.stats import Ordering

RECIPE = tcod.RECIPE.replace(
    name="tcod/back_to_front",
    tasks={"distances": (2, 41)},
    budget={"turns": Fixed(limit=LONG)},
    sampler=BackToFront(left=Linear(start=1, limit=LONG, interval=1, cap=12)),
    evaluation={"every": 3, "tasks": 200},
)

_whole = {"sampler": Groups()}
_medium, _near = {"tasks": {"distances": (2, 16)}}, {"tasks": {"distances": (2, 6)}}

CLAIM = Claim(
    name="tcod/back_to_front",
    paper="arXiv 2604.24005, abstract",
    statement="By equal sampled tokens, distillation on what the student plays ends with more success where it goes on from ever earlier "
    "turns of a demonstration than where whole episodes are played from the first iteration on, and by the more the farther the tasks lie.",
    recipe=RECIPE,
    arms={
        "back": RECIPE,
        "whole": RECIPE.replace(**_whole),
        "back_16": RECIPE.replace(**_medium),
        "whole_16": RECIPE.replace(**_medium, **_whole),
        "back_6": RECIPE.replace(**_near),
        "whole_6": RECIPE.replace(**_near, **_whole),
    },
    expected=Ordering(relations=("back > whole by 0.03",)),
    dose=("back_6 > whole_6", "back_16 > whole_16", "back > whole"),
    seeds=tuple(range(400, 408)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (1.25e-4, 2.5e-4, 5e-4, 1e-3, 2e-3)},
    tuning={"iterations": 6, "episodes_per_iteration": 128, "evaluation.every": 6},
    cost="sampled_tokens",
    equal_cost=True,
)

"""TCOD on trails of pages: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.curriculum import Fixed
from longstride.curriculum.schedules import Linear
from longstride.methods import KL, Mean, Reinforce, Teacher
from longstride.papers.tcod.method import NoAdvantage
from longstride.setups import dial
from longstride.setups.dial import LONG
from longstride.stats import Ordering

RECIPE = dial.recipe(
    "tcod",
    credit=NoAdvantage(),
    loss=Reinforce(
        aggregation=Mean(over="sequence"),
        kl=KL(coefficient=1.0, estimator="k2", anchor=Teacher(model="base-dial-straight")),
    ),
    budget={"turns": Linear(start=4, limit=LONG, interval=1, cap=12)},
    learner={"lr": 5e-4, "batch_samples": 64},
)

FAR = RECIPE.replace(tasks={"distances": (2, 41)}, evaluation={"every": 3, "tasks": 200})
_whole = {"budget": {"turns": Fixed(limit=LONG)}}
_medium, _near = {"tasks": {"distances": (2, 36)}}, {"tasks": {"distances": (2, 30)}}

CLAIM = Claim(
    name="tcod",
    paper="arXiv 2604.24005, abstract",
    statement="By equal environment steps, distillation on what the student plays ends with more success where its horizon grows than "
    "where whole episodes are played from the first iteration on, and by the more the farther the tasks lie.",
    recipe=FAR,
    arms={
        "growing": FAR,
        "whole": FAR.replace(**_whole),
        "growing_36": FAR.replace(**_medium),
        "whole_36": FAR.replace(**_medium, **_whole),
        "growing_30": FAR.replace(**_near),
        "whole_30": FAR.replace(**_near, **_whole),
    },
    expected=Ordering(relations=("growing > whole by 0.03",)),
    dose=("growing_30 > whole_30", "growing_36 > whole_36", "growing > whole"),
    seeds=tuple(range(300, 308)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (1.25e-4, 2.5e-4, 5e-4, 1e-3, 2e-3)},
    tuning={"iterations": 6, "episodes_per_iteration": 128, "evaluation.every": 6},
    cost="env_steps",
    equal_cost=True,
)

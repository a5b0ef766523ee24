"""The regimes on trails of pages, and the horizons that are compared in each."""

from longstride.curriculum import Fixed
from longstride.curriculum.schedules import StepList
from longstride.papers.tti import dial as tti
from longstride.setups.dial import SHORT

LONG, TEST = 32, 24
"""Turns: the long horizon, and those of the tests, in which waste does not fit."""

HORIZONS = {
    "growing": StepList(steps=((2, SHORT), (4, 16), (6, 24), (8, LONG))),
    "long": Fixed(limit=LONG),
    "short": Fixed(limit=SHORT),
}

RECIPE = tti.RECIPE.replace(
    name="regimes",
    iterations=8,
    episodes_per_iteration=128,
    tasks={"distances": (2, 16)},
    budget={"turns": HORIZONS["growing"]},
    test_budget={"turns": Fixed(limit=TEST)},
    replay={"keep": 256},
    evaluation={"every": 8, "tasks": 160},
    patience=9,  # under the short horizon nothing succeeds far away, and that is a result
)
_far = RECIPE.replace(tasks={"distances": (9, 24)}, test_budget={"turns": Fixed(limit=36)})
_calm = RECIPE.replace(tasks={"help": False})

REGIMES = {
    "middle": RECIPE,
    "near": RECIPE.replace(tasks={"distances": (2, 6)}),
    "far": _far,
    "calm": _calm,
    "favour": _calm.replace(credit={"weight": "by_length"}),
    "judge": RECIPE.replace(reward={"false_positive": 0.3}),
    "far_judge": _far.replace(reward={"false_positive": 0.3}),
}

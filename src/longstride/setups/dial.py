"""The setup of recipes on trails of pages: a world whose goal distance is one number (`envs.dial`).

A page says all that is to be known, so a prompt is the goal and the newest page, and 48 turns cost what 4 cost on a
site. What a claim about horizons turns:

| regime | change of a recipe |
|---|---|
| distance | `tasks={"distances": (2, 21)}`; held-out tasks farther away: `tasks={"test_distances": (8, 16, 32, 64)}` |
| waste | the start, `model`: `envs.dial.Habits` measures how it wanders; `tasks={"links": 4, "astray": 2}` |
| favour of short actions | `credit={"weight": "by_length"}`: 2 with `tasks={"help": False}`, else 1 |
| noise of the judge | `reward={"false_positive": 0.1}` |
"""

from typing import Any

from longstride.curriculum import BudgetSchedule, Fixed
from longstride.envs.dial import Dial
from longstride.learner.config import LearnerConfig
from longstride.learner.critics import CriticConfig
from longstride.methods import Credit, Loss, OnPolicy
from longstride.rewards import TaskReward
from longstride.rollout.context import LatestObservation
from longstride.rollout.trails import Misread, Wasted
from longstride.run.recipe import Evaluation, Recipe

SHORT, LONG = 8, 48
"""Turns: the short horizon sees the nearest third of the tasks, the long one leaves room to waste half of it."""


def recipe(name: str, credit: Credit, loss: Loss, critic: CriticConfig | None = None, **changes: Any) -> Recipe:
    """A recipe on trails, with changes as `Component.replace` takes them."""
    return Recipe(
        name=name,
        iterations=12,
        episodes_per_iteration=256,
        model="base-dial",
        tasks=Dial(),
        budget=BudgetSchedule(turns=Fixed(limit=LONG), turn_tokens=12),
        test_budget=BudgetSchedule(turns=Fixed(limit=LONG), turn_tokens=12),
        context=LatestObservation(),
        reward=TaskReward(),
        replay=OnPolicy(),
        credit=credit,
        loss=loss,
        critic=critic,
        learner=LearnerConfig(dtype="float32", threads="auto"),
        evaluation=Evaluation(every=6, baselines=False, measures=(Wasted(), Misread())),
    ).replace(engine={"processes": "auto"}, **changes)

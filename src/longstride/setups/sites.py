"""The setup of recipes on the embedded sites: shops, stays, forums and an encyclopedia, many turns an episode.

A recipe names its credit, its loss and what else it has otherwise; the rest is here. The model has about a million
parameters and reads text, so rate, batch and lengths are a small model's.
"""

from typing import Any

from longstride.curriculum import BudgetSchedule
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.learner.config import LearnerConfig
from longstride.learner.critics import CriticConfig
from longstride.methods import Credit, Loss, OnPolicy
from longstride.rewards import TaskReward
from longstride.rollout.context import FullHistory
from longstride.run.recipe import Evaluation, Recipe

SHORT, MEDIUM, LONG = 8, 16, 24
"""Turns: easy tasks are solved within the short horizon, few hard ones are."""
SHEET = {"sites": ("sheet",)}
"""Change of `tasks` to the control site: everything is on the first page, so there is nothing to explore."""


def recipe(name: str, credit: Credit, loss: Loss, critic: CriticConfig | None = None, **changes: Any) -> Recipe:
    """A recipe on the embedded sites, with changes as `Component.replace` takes them."""
    return Recipe(
        name=name,
        iterations=16,
        episodes_per_iteration=256,
        tasks=EmbeddedWeb(),
        budget=BudgetSchedule(turns=LONG),
        test_budget=BudgetSchedule(turns=LONG),
        context=FullHistory(),
        reward=TaskReward(),
        replay=OnPolicy(),
        credit=credit,
        loss=loss,
        critic=critic,
        learner=LearnerConfig(lr=3e-4, warmup_steps=5, epochs=2, batch_samples=384),
        evaluation=Evaluation(every=2),
    ).replace(**changes)


def arm(base: Recipe, iterations: int = 9, every: int = 5) -> Recipe:
    """A recipe as long as an arm of a claim, evaluated less often."""
    return base.replace(iterations=iterations, evaluation={"every": every, "baselines": False})

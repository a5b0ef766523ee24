"""The setup of recipes on puzzles: chains modulo 7 and Countdown, one turn an episode, groups of eight.

A recipe names its credit, its loss and what else it has otherwise; the rest is here. The model has less than half a
million parameters, so rate, batch and lengths are a small model's. The rate was chosen once, for GRPO, of 1e-4 and 3e-4
(5e-4 and more lost success from an earlier, weaker start).

On the embedded sites: `longstride train grpo model=base tasks.type=embedded_web budget.turns=24 test_budget.turns=24`.
"""

from typing import Any

from longstride.curriculum import BudgetSchedule
from longstride.envs.puzzles import ModularChain, Puzzles
from longstride.learner.config import LearnerConfig
from longstride.learner.critics import CriticConfig
from longstride.methods import PPO, Credit, GroupRelative, Loss, OnPolicy
from longstride.rewards import TaskReward
from longstride.rollout.context import FullHistory
from longstride.run.recipe import Evaluation, Recipe
from longstride.strategies import Strategy

TOKENS = 160
"""Sampled tokens of a turn: four attempts at a Countdown of four numbers, and the answer."""
ALIKE = ModularChain(lengths=(2, 2, 2))
"""Tasks of one difficulty: the control of claims about difficulty."""
SPREAD = {"none": (4, 4, 4), "narrow": (3, 4, 6), "wide": (2, 5, 10)}
"""Lengths of easy, medium and hard chains, ever more unequal: the dose of such claims."""
UNTRAINED = {
    "iterations": 1,
    "episodes_per_iteration": 8,
    "learner": {"epochs": 0},
    "evaluation": {"every": 1, "tasks": 300},
}
"""Changes of a recipe that is tested, and learns nothing by reinforcement."""


def recipe(name: str, credit: Credit, loss: Loss, critic: CriticConfig | None = None, **changes: Any) -> Recipe:
    """A recipe on puzzles, with changes as `Component.replace` takes them."""
    return Recipe(
        name=name,
        iterations=40,
        episodes_per_iteration=256,
        group_size=8,
        model="base-puzzles",
        tasks=Puzzles(),
        budget=BudgetSchedule(turns=1, turn_tokens=TOKENS),
        test_budget=BudgetSchedule(turns=1, turn_tokens=TOKENS),
        context=FullHistory(),
        reward=TaskReward(),
        replay=OnPolicy(),
        credit=credit,
        loss=loss,
        critic=critic,
        learner=LearnerConfig(lr=3e-4, warmup_steps=5, epochs=2, batch_samples=128),
        evaluation=Evaluation(every=10, baselines=False),
    ).replace(**changes)


def tested(name: str, strategies: tuple[Strategy, ...], **changes: Any) -> Recipe:
    """A recipe that trains nothing, for strategies at test time that are compared: `longstride eval NAME`
    plays them."""
    untrained = recipe(name, credit=GroupRelative(), loss=PPO(), **UNTRAINED)
    return untrained.replace(
        evaluation={"strategies": strategies},
    ).replace(**changes)


def arm(base: Recipe, tasks: int = 1200) -> Recipe:
    """A recipe as long as an arm of a claim: half a minute of one core."""
    return base.replace(
        iterations=16,
        episodes_per_iteration=128,
        learner={"batch_samples": 64},
        evaluation={"every": 16, "tasks": tasks},
    )

"""Curriculum: how much an episode may take, and which tasks are drawn, iteration by iteration. No torch."""

from longstride.curriculum.budgets import BudgetSchedule
from longstride.curriculum.schedules import (
    Additive,
    Fixed,
    Growing,
    Linear,
    Multiplicative,
    PerDifficulty,
    Schedule,
    StepList,
)
from longstride.curriculum.tasks import TaskCurriculum, Uniform

__all__ = [
    "Additive", "BudgetSchedule", "Fixed", "Growing", "Linear", "Multiplicative", "PerDifficulty",
    "Schedule", "StepList", "TaskCurriculum", "Uniform",
]  # fmt: skip

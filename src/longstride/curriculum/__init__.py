"""Curriculum: how much an episode may take, and which tasks are drawn, iteration by iteration. No torch."""

from longstride.curriculum.adaptive import Adaptive, OnPlateau
from longstride.curriculum.budgets import BudgetSchedule
from longstride.curriculum.schedules import Fixed, Growing, Linear, Multiplicative, PerDifficulty, Schedule, StepList
from longstride.curriculum.tasks import TaskCurriculum, Uniform

__all__ = [
    "Adaptive",
    "BudgetSchedule",
    "Fixed",
    "Growing",
    "Linear",
    "Multiplicative",
    "OnPlateau",
    "PerDifficulty",
    "Schedule",
    "StepList",
    "TaskCurriculum",
    "Uniform",
]

"""Curriculum: how much an episode may take, and which tasks are drawn, iteration by iteration. No torch.

Schedules in stages are in `stages`.
"""

from longstride.curriculum.adaptive import OnPlateau
from longstride.curriculum.budgets import BudgetSchedule
from longstride.curriculum.schedules import Fixed, Growing, Multiplicative, Schedule
from longstride.curriculum.tasks import TaskCurriculum, Uniform

__all__ = [
    "BudgetSchedule", "Fixed", "Growing", "Multiplicative", "OnPlateau", "Schedule", "TaskCurriculum", "Uniform",
]  # fmt: skip

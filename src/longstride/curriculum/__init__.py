"""Curriculum: how much an episode may take, and which tasks are drawn, iteration by iteration. No torch.

Schedules in stages are in `stages`.
"""

from longstride.curriculum.budgets import BudgetSchedule
from longstride.curriculum.schedules import Additive, Fixed, Growing, Multiplicative, Schedule
from longstride.curriculum.tasks import TaskCurriculum, Uniform

__all__ = [
    "Additive", "BudgetSchedule", "Fixed", "Growing", "Multiplicative", "Schedule", "TaskCurriculum", "Uniform",
]  # fmt: skip

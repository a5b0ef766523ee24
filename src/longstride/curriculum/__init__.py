"""Curriculum: how much an episode may take, iteration by iteration. No torch."""

from longstride.curriculum.schedules import (
    Additive,
    BudgetSchedule,
    Cosine,
    Fixed,
    Linear,
    Multiplicative,
    PerDifficulty,
    Staged,
    Stair,
    StairCosine,
    StepList,
)

__all__ = [
    "Additive",
    "Cosine",
    "Fixed",
    "BudgetSchedule",
    "Linear",
    "Multiplicative",
    "PerDifficulty",
    "Stair",
    "StairCosine",
    "Staged",
    "StepList",
]

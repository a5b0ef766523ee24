"""Curriculum: how long an episode may be, iteration by iteration. No torch."""

from longstride.curriculum.schedules import (
    Additive,
    Fixed,
    HorizonSchedule,
    Linear,
    Multiplicative,
    PerDifficulty,
    Staged,
    StepList,
)

__all__ = ["Additive", "Fixed", "HorizonSchedule", "Linear", "Multiplicative", "PerDifficulty", "Staged", "StepList"]

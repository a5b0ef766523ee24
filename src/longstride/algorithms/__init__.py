"""Algorithms: which tokens are trained with which weight, and what the loss makes of it. No torch."""

from longstride.algorithms.advantages import GAE, GroupRelative, StepRelative
from longstride.algorithms.aggregation import Aggregation, Constant, Mean
from longstride.algorithms.attempts import AttemptCredit
from longstride.algorithms.base import Credit, OnPolicy, Replay, Sample
from longstride.algorithms.filtered_bc import FilteredBC, TTIReplay
from longstride.algorithms.length import LengthPenalty
from longstride.algorithms.losses import CISPO, GSPO, KL, PPO, Correction, Loss, Reinforce

__all__ = [
    "AttemptCredit",
    "CISPO",
    "GAE",
    "GSPO",
    "KL",
    "PPO",
    "Aggregation",
    "Constant",
    "Correction",
    "Credit",
    "FilteredBC",
    "GroupRelative",
    "LengthPenalty",
    "Loss",
    "Mean",
    "OnPolicy",
    "Reinforce",
    "Replay",
    "Sample",
    "StepRelative",
    "TTIReplay",
]

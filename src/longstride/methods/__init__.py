"""Algorithms: which tokens are trained with which weight, and what the loss makes of it. No torch."""

from longstride.methods.advantages import GAE, GroupRelative, StepRelative
from longstride.methods.aggregation import Aggregation, Constant, Mean
from longstride.methods.attempts import AttemptCredit
from longstride.methods.base import Credit, OnPolicy, Replay, Sample
from longstride.methods.filtered_bc import FilteredBC, TTIReplay
from longstride.methods.length import LengthPenalty
from longstride.methods.losses import CISPO, GSPO, KL, PPO, Correction, Loss, Reinforce

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

"""Methods: which tokens are trained with which weight, and what the loss makes of it. No torch.

A member stands here when two papers use it; what one paper alone uses stands in that paper's recipe. Losses of pairs
are in `preferences`, the credit of imitation in `cloning`.
"""

from longstride.methods.advantages import GAE, GroupCredit, GroupRelative, StepRelative, group_advantages
from longstride.methods.aggregation import Aggregation, Constant, Mean
from longstride.methods.base import Credit, OnPolicy, Replay, Sample, demonstration
from longstride.methods.losses import (
    CISPO,
    GSPO,
    KL,
    PPO,
    Anchor,
    ImportanceCorrection,
    Latest,
    Loss,
    MovingAverage,
    Reinforce,
    Start,
)

__all__ = [
    "CISPO", "GAE", "GSPO", "KL", "PPO", "Aggregation", "Anchor", "Constant", "Credit", "GroupCredit",
    "GroupRelative", "ImportanceCorrection", "Latest", "Loss", "Mean", "MovingAverage", "OnPolicy", "Reinforce",
    "Replay", "Sample", "Start", "StepRelative", "demonstration", "group_advantages",
]  # fmt: skip

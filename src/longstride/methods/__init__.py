"""Methods: which tokens are trained with which weight, and what the loss makes of it. No torch.

A member stands here when two papers use it; what one paper alone uses stands in that paper's recipe. Losses of pairs
are in `preferences`, further losses of a ratio in `ratios`, credit by rewards to come in `returns`, that of imitation
in `cloning`, that of trials in `trials`, references that move in `anchors`.
"""

from longstride.methods.advantages import GroupRelative, group_advantages
from longstride.methods.aggregation import Aggregation, Constant, Mean
from longstride.methods.base import Advantage, Credit, Sample, demonstration, turn_rewards, turn_states
from longstride.methods.losses import KL, PPO, Anchor, ImportanceCorrection, Loss, Reinforce, Start
from longstride.methods.replay import MixedGroups, OnPolicy, Replay

__all__ = [
    "KL", "PPO", "Advantage", "Aggregation", "Anchor", "Constant", "Credit", "GroupRelative", "ImportanceCorrection",
    "Loss", "Mean", "MixedGroups", "OnPolicy", "Reinforce", "Replay", "Sample", "Start", "demonstration",
    "group_advantages", "turn_rewards", "turn_states",
]  # fmt: skip

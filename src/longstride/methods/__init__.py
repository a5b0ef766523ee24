"""Methods: which tokens are trained with which weight, and what the loss makes of it. No torch.

A member stands here when two papers use it, or users' own recipes; all else stands in its paper's `method.py`.
"""

from longstride.methods.advantages import GAE, GroupRelative, gae, group_advantages
from longstride.methods.aggregation import Aggregation, Constant, Mean
from longstride.methods.base import Advantage, Credit, Sample, demonstration, turn_rewards, turn_states
from longstride.methods.cloning import FilteredBC
from longstride.methods.kl import KL, Anchor, Latest, MovingAverage, Start, Teacher
from longstride.methods.losses import Loss, Reinforce
from longstride.methods.pairs import PairCredit, SiblingPairs
from longstride.methods.preferences import DPO, INPO, IPO
from longstride.methods.ratios import CISPO, GSPO, PPO, ImportanceCorrection
from longstride.methods.replay import MixedGroups, OnPolicy, Replay
from longstride.methods.trials import TrialReturn
from longstride.methods.weighted import AdvantageWeighted

__all__ = [
    "CISPO",
    "DPO",
    "GAE",
    "GSPO",
    "INPO",
    "IPO",
    "KL",
    "PPO",
    "Advantage",
    "AdvantageWeighted",
    "Aggregation",
    "Anchor",
    "Constant",
    "Credit",
    "FilteredBC",
    "GroupRelative",
    "ImportanceCorrection",
    "Latest",
    "Loss",
    "Mean",
    "MixedGroups",
    "MovingAverage",
    "OnPolicy",
    "PairCredit",
    "Reinforce",
    "Replay",
    "Sample",
    "SiblingPairs",
    "Start",
    "Teacher",
    "TrialReturn",
    "demonstration",
    "gae",
    "group_advantages",
    "turn_rewards",
    "turn_states",
]

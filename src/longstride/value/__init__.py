"""Values: transition data, critics, and what is made of them. Agents for control are put together here.

An algorithm is a configuration: `value.algorithms` has SHARSA, CQL, Cal-QL, WSRL and what they are compared with.
"""

from longstride.value.agent import Agent, ControlLearner, Level
from longstride.value.batches import Ahead, Batch, Gather, Given, Goals, Relabelled
from longstride.value.conservative import Conservative
from longstride.value.critics import Critic, PolicyValue, Sarsa
from longstride.value.data import TransitionStore
from longstride.value.extraction import AWR, DDPGBC, SAC, Extraction, Imitation, Rejection
from longstride.value.heads import BCE, Head, HLGauss, Scalar
from longstride.value.loop import ControlLoop, Phase

__all__ = [
    "AWR", "BCE", "DDPGBC", "SAC", "Agent", "Ahead", "Batch", "Conservative", "ControlLearner", "ControlLoop", "Critic",
    "Extraction", "Gather", "Given", "Goals", "HLGauss", "Head", "Imitation", "Level", "Phase", "PolicyValue",
    "Rejection", "Relabelled", "Sarsa", "Scalar", "TransitionStore",
]  # fmt: skip

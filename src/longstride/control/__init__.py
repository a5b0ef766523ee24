"""Values: transition data, critics, and what is made of them. Agents for control are put together here.

An algorithm is a configuration: `control.algorithms` has SHARSA, CQL, Cal-QL, WSRL and what they are compared with.
"""

from longstride.control.agent import Agent, ControlLearner, Level
from longstride.control.batches import Ahead, Batch, Gather, Given, Goals, Relabelled
from longstride.control.conservative import Conservative
from longstride.control.critics import Critic, PolicyValue, Sarsa
from longstride.control.data import TransitionStore
from longstride.control.extraction import AWR, DDPGBC, SAC, Extraction, Imitation, Rejection
from longstride.control.loop import ControlLoop, Phase
from longstride.models.heads import BCE, Head, HLGauss, Scalar

__all__ = [
    "AWR", "BCE", "DDPGBC", "SAC", "Agent", "Ahead", "Batch", "Conservative", "ControlLearner", "ControlLoop", "Critic",
    "Extraction", "Gather", "Given", "Goals", "HLGauss", "Head", "Imitation", "Level", "Phase", "PolicyValue",
    "Rejection", "Relabelled", "Sarsa", "Scalar", "TransitionStore",
]  # fmt: skip

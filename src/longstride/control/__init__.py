"""Control: agents that learn values of real-valued actions from transitions, offline and online.

A recipe (`ControlRecipe`) is tasks, an agent and phases. An agent is levels; a level is data, critic, policy and
extraction.
"""

from longstride.control.agent import ControlAgent, Level
from longstride.control.batches import Batch, Given, Goals, NStep, Relabelled
from longstride.control.conservative import Conservative
from longstride.control.critics import ControlCritic, CriticNets, TDCritic
from longstride.control.data import TransitionStore
from longstride.control.envs import ControlEpisode, PointMaze
from longstride.control.extraction import AWR, DDPGBC, SAC, BestOfN, Extraction, Imitation
from longstride.control.policies import ControlPolicy, FlowPolicy, GaussianPolicy
from longstride.control.recipe import ControlEvaluation, ControlRecipe, TrainingPhase

__all__ = [
    "AWR", "Batch", "BestOfN", "Conservative", "ControlAgent", "ControlCritic", "ControlEpisode", "ControlEvaluation",
    "ControlPolicy", "ControlRecipe", "CriticNets", "DDPGBC", "Extraction", "FlowPolicy", "GaussianPolicy", "Given",
    "Goals", "Imitation", "Level", "NStep", "PointMaze", "Relabelled", "SAC", "TDCritic", "TrainingPhase",
    "TransitionStore",
]  # fmt: skip

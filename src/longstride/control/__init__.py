"""Control: agents that learn values of actions from transitions, offline and online.

A recipe (`ControlRecipe`) is tasks, an agent and phases. An agent is levels; a level is data, critics, memory, policy
and extraction.
"""

from longstride.control.agent import ControlAgent, FurtherCritic, Level
from longstride.control.batches import Ahead, Batch, Given, Goals, NStep, Relabelled
from longstride.control.codes import ActionCodes, CodeNets
from longstride.control.conservative import Conservative
from longstride.control.critics import DQN, ControlCritic, CriticNets, QCritic, QNets, TDCritic, WeightedCritics
from longstride.control.data import TransitionStore
from longstride.control.envs import (
    CompassMaze,
    ControlEpisode,
    ControlTasks,
    GymnasiumTasks,
    Pendulum,
    PointMaze,
    Several,
)
from longstride.control.extraction import AWR, SAC, TD3, BehaviourCloning, BestOfN, Extraction, Greedy
from longstride.control.implicit import Expectile, ImplicitQ, ImplicitV, Maximiser
from longstride.control.memory import GRU, Memory, MemoryNets, Windows
from longstride.control.meta import Reptile
from longstride.control.on_policy import LambdaReturns, Proximal
from longstride.control.policies import (
    BinsPolicy,
    BoxPolicy,
    CategoricalPolicy,
    ControlPolicy,
    DeterministicPolicy,
    FlowPolicy,
    GaussianPolicy,
    NormalPolicy,
    PolicyNets,
    UniformPolicy,
)
from longstride.control.recipe import ControlEvaluation, ControlRecipe, TrainingPhase
from longstride.control.weights import EpisodeWeights, RowWeights

__all__ = [
    "AWR",
    "ActionCodes",
    "Ahead",
    "Batch",
    "BestOfN",
    "BinsPolicy",
    "BoxPolicy",
    "CategoricalPolicy",
    "CodeNets",
    "CompassMaze",
    "Conservative",
    "ControlAgent",
    "ControlCritic",
    "ControlEpisode",
    "ControlEvaluation",
    "ControlPolicy",
    "ControlRecipe",
    "ControlTasks",
    "CriticNets",
    "DQN",
    "DeterministicPolicy",
    "EpisodeWeights",
    "Expectile",
    "Extraction",
    "FlowPolicy",
    "FurtherCritic",
    "GRU",
    "GaussianPolicy",
    "Given",
    "Goals",
    "Greedy",
    "GymnasiumTasks",
    "ImplicitQ",
    "ImplicitV",
    "BehaviourCloning",
    "LambdaReturns",
    "Level",
    "Maximiser",
    "Memory",
    "MemoryNets",
    "NStep",
    "NormalPolicy",
    "Pendulum",
    "Proximal",
    "PointMaze",
    "PolicyNets",
    "QCritic",
    "QNets",
    "Relabelled",
    "Reptile",
    "RowWeights",
    "SAC",
    "Several",
    "TD3",
    "TDCritic",
    "TrainingPhase",
    "TransitionStore",
    "UniformPolicy",
    "WeightedCritics",
    "Windows",
]

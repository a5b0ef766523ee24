"""Rollout: plans are played to trajectories, and trajectories kept. No torch."""

from longstride.rollout.context import (
    AsRequested,
    BudgetInView,
    ContextPolicy,
    FullHistory,
    LatestObservation,
    Past,
    RecentObservations,
    RecentTurns,
    SpentBudget,
    TrialHistory,
)
from longstride.rollout.episode import Episode, Generation, PastTurn, Plan
from longstride.rollout.pieces import PartialRollouts
from longstride.rollout.planning import DynamicSampling, Groups, Planner, Sampler, Stages, WithRivals
from longstride.rollout.players import LanguagePlayer, Player, ScriptedPlayer
from longstride.rollout.pool import Pool
from longstride.rollout.scheduler import PoolConfig
from longstride.rollout.store import TrajectoryStore
from longstride.rollout.summary import Measure, summarise
from longstride.rollout.trial import Trial

__all__ = [
    "AsRequested",
    "BudgetInView",
    "ContextPolicy",
    "DynamicSampling",
    "Episode",
    "FullHistory",
    "Generation",
    "Groups",
    "LanguagePlayer",
    "LatestObservation",
    "Measure",
    "PartialRollouts",
    "Past",
    "PastTurn",
    "Plan",
    "Planner",
    "Player",
    "Pool",
    "PoolConfig",
    "RecentObservations",
    "RecentTurns",
    "Sampler",
    "ScriptedPlayer",
    "SpentBudget",
    "Stages",
    "TrajectoryStore",
    "Trial",
    "TrialHistory",
    "WithRivals",
    "summarise",
]

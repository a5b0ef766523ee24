"""Rollout: plans are played to trajectories, and trajectories kept. No torch."""

from longstride.rollout.context import ContextPolicy, KeepAll, KeepLast
from longstride.rollout.episode import Episode, Plan, Said
from longstride.rollout.players import LanguagePlayer, Player, ScriptedPlayer
from longstride.rollout.pool import Pool
from longstride.rollout.rounds import PoolConfig
from longstride.rollout.store import TrajectoryStore
from longstride.rollout.summary import summarise

__all__ = [
    "ContextPolicy",
    "Episode",
    "KeepAll",
    "KeepLast",
    "LanguagePlayer",
    "Plan",
    "Player",
    "Pool",
    "PoolConfig",
    "Said",
    "ScriptedPlayer",
    "TrajectoryStore",
    "summarise",
]

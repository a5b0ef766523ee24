"""Strategies: what is done with a policy at test time, and the trivial policies beside it. No torch.

All but `direct` are found by their names alone (`longstride.wings`).
"""

from longstride.strategies.base import Direct, EvalEpisode, EvalPlan, Strategy

__all__ = ["Direct", "EvalEpisode", "EvalPlan", "Strategy"]

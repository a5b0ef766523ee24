"""Strategies: what is done with a policy at test time, and the trivial policies beside it. No torch.

`anytime` is found by its name alone (`longstride.wings`).
"""

from longstride.strategies.base import Direct, EvalEpisode, EvalPlan, Strategy
from longstride.strategies.baselines import BASELINES
from longstride.strategies.check_again import CheckAgain

__all__ = ["BASELINES", "CheckAgain", "Direct", "EvalEpisode", "EvalPlan", "Strategy"]

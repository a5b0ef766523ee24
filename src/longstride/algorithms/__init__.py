"""Algorithms: which tokens are trained with which weight. No torch."""

from longstride.algorithms.base import Credit, OnPolicy, Replay, Sample
from longstride.algorithms.filtered_bc import FilteredBC, TTIReplay

__all__ = ["Credit", "FilteredBC", "OnPolicy", "Replay", "Sample", "TTIReplay"]

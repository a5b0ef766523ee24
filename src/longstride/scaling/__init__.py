"""Scaling laws: what more compute, data or attempts will buy, fitted to what was measured. No torch."""

from longstride.scaling.fitting import Band, Fit, fit
from longstride.scaling.frontier import Frontier, Plateau, cheapest, frontier, plateau, records, split
from longstride.scaling.laws import (
    FitError,
    Geometric,
    Law,
    LogSigmoid,
    MixedGeometric,
    Power,
    RisingPower,
    Sigmoid,
    SizedPower,
)

__all__ = [
    "Band",
    "Fit",
    "FitError",
    "Frontier",
    "Geometric",
    "Law",
    "LogSigmoid",
    "MixedGeometric",
    "Plateau",
    "Power",
    "RisingPower",
    "Sigmoid",
    "SizedPower",
    "cheapest",
    "fit",
    "frontier",
    "plateau",
    "records",
    "split",
]

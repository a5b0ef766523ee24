"""Weighted cloning: what was done is imitated by how much better it was than what else could have been. No torch."""

from collections.abc import Sequence
from math import exp

from longstride.core.numbers import Positive
from longstride.core.trajectory import Trajectory
from longstride.methods.base import Advantage, Credit


class AdvantageWeighted(Credit):
    """Each action weighs exp((Q - V) / temperature), by a critic of turns: advantage-weighted regression (arXiv
    1910.00177). What is imitated so is the policy that sampled, times these weights: the one that implicit Q-learning
    draws from (ILQL, arXiv 2206.11871)."""

    temperature: Positive = 0.1
    """In units of the value; towards 0 only what is best weighs."""
    most: Positive = 20.0
    """Largest weight."""

    @property
    def estimates(self) -> frozenset[str]:
        return frozenset({"action_value", "value"})

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        def weight(estimates: dict[str, float]) -> float:
            better = (estimates["action_value"] - estimates["value"]) / self.temperature
            return min(exp(min(better, 700.0)), self.most)  # exp(710) is no float

        return [[weight(turn.estimates) for turn in t.turns] for t in played]

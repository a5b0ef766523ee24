"""A reward with a little for turns that could be parsed (`Formatted`)."""

from typing import Any

from longstride.core.numbers import Weight
from longstride.core.trajectory import Trajectory
from longstride.rewards import TaskReward, Verdict


class Formatted(TaskReward):
    """The task's own reward, and a little for turns that could be parsed."""

    weight: Weight = 0.1
    """Of the share of turns that could be."""

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        verdict = super().__call__(trajectory, state, seed)
        parsed = sum(turn.action is not None for turn in trajectory.turns) / max(trajectory.length, 1)
        terms = {"outcome": trajectory.earned + verdict.reward, "format": self.weight * parsed}
        return Verdict(verdict.reward + terms["format"], verdict.success, terms, verdict.evidence)

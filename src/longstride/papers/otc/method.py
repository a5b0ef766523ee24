"""A reward that falls with tool calls that were not needed (`ToolProductivity`)."""

import math
from collections.abc import Sequence

from longstride.core.numbers import Positive
from longstride.core.trajectory import Trajectory
from longstride.rewards import TaskReward, Verdict


def productivity(m: int, n: int, c: float) -> float:
    """r_tool of m calls where n were enough, in [0, 1]."""
    if n:
        return math.sin(math.pi * m / (m + n))  # f pi / (2 n)
    return math.cos(m * math.pi / (2 * m + c)) if m else 1.0


class ToolProductivity(TaskReward):
    """1 for a success, as evaluator or environment say, times r_tool for the fewest calls of a success in the group."""

    most: Positive
    """c: with the fewest being none, a success with m calls earns cos(m pi / (2 m + c))."""

    def compare(self, group: Sequence[Trajectory]) -> Sequence[Verdict]:
        calls = [sum(turn.verb != "answer" for turn in t.turns) for t in group]
        fewest = min((m for m, t in zip(calls, group, strict=True) if t.success), default=0)
        verdicts = []
        for m, t in zip(calls, group, strict=True):
            terms = {"correct": float(t.success), "tool": productivity(m, fewest, self.most)}
            reward = terms["correct"] * terms["tool"] - t.earned
            verdicts.append(Verdict(reward, t.success, terms, t.evidence))
        return verdicts

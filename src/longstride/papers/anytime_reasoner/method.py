"""BRPO: credit from the answers at all budgets (`BudgetRelative`)."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from longstride.core.trajectory import Trajectory, by_group
from longstride.methods import Advantage, Credit

BY_BUDGET = "by_budget"
"""In `Trajectory.evidence`: the mean of the answers at each budget, in order."""


class BudgetRelative(Credit):
    """BRPO: each sampled token is a segment, and has the advantage of the equation above."""

    prior: Literal["uniform", "linear", "base"] = "uniform"
    """P_j: the same for all budgets, proportional to them, or the largest one alone."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        found: dict[int, list[float]] = {}
        for group in by_group(played):
            advantages_NS = self.of_group(np.array([t.evidence[BY_BUDGET] for t in group]))
            found |= {t.ordinal: a for t, a in zip(group, advantages_NS.tolist(), strict=True)}
        return [[found[t.ordinal]] for t in played]

    def of_group(self, scores_NS: np.ndarray) -> np.ndarray:
        """[N, S] of a group, from the mean of its answers at each budget."""
        budgets = scores_NS.shape[1]
        shape = {"uniform": np.ones(budgets), "linear": np.arange(budgets) + 1.0, "base": np.eye(budgets)[-1]}
        prior_S = shape[self.prior] / shape[self.prior].sum()
        to_go_NS = (prior_S * scores_NS)[:, ::-1].cumsum(1)[:, ::-1]
        weight_S, left_S = 2.0 ** np.arange(budgets), prior_S[::-1].cumsum()[::-1]
        before_NS = np.cumsum(weight_S * scores_NS, 1) - weight_S * scores_NS
        own_NS = before_NS / np.maximum(np.cumsum(weight_S) - weight_S, 1) * left_S
        s = np.arange(budgets)
        return to_go_NS - (s * own_NS + (budgets - s) * to_go_NS.mean(0)) / budgets

"""ArCHer beside its authors' code: values that `critic_loss` and `actor_loss` of YifeiZhou02/ArCHer
(`archer/algorithms/archer/trainer.py`, commit 7c771a7) give where Q, V and their targets are these tables, with
discount 0.95."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from by_hand import slopes
from helpers import Collected, make_trajectory, make_turn, tiny_policy
from torch import Tensor, nn

from longstride.core.trajectory import Trajectory, Turn
from longstride.learner.critics import CriticBatch
from longstride.methods import Mean, Reinforce
from longstride.models.load import save_policy
from longstride.papers.archer.critic import DoubleCritic
from longstride.papers.archer.method import DoubleValue, TurnAdvantage

VALUES = [[[0.3, -0.2, 0.9, 0.4], [0.1, 0.5, -0.6, 0.7]], [[0.2, 0.0, 0.4, -0.3], [-0.1, 0.6, 0.2, 0.8]]]
"""Two Q of four turns, and two V."""
TARGETS = [[[0.5, 0.25, -0.4, 0.1], [0.35, -0.15, 0.6, 0.2]], [[0.15, 0.45, -0.25, 0.7], [0.55, 0.05, 0.3, -0.1]]]
LOSSES = {"action_value_loss": 0.87130781 + 1.06038281, "value_loss": 0.238125 + 0.32125}
GRADIENTS = [
    [[0.06125, -0.6, -0.1325, 0.7], [0.15125, -0.25, -0.5025, 0.85]],
    [[-0.15, -0.125, 0.4, -0.2], [-0.225, 0.375, -0.2, 0.3]],
]
LOGPS, OF_LOGPS = [[-1.5], [-0.4], [-2.0], [-0.7]], [-0.05, 0.05, 0.2, -0.175]


class Table(nn.Module):
    """Q and V of turns, by the only token of their prompt."""

    def __init__(self, values: Any) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.tensor(values))
        self.gradient = torch.tensor(0.0)
        self.values.register_hook(lambda g: setattr(self, "gradient", g))

    def forward(self, turns: Sequence[Turn]) -> tuple[Tensor, Tensor]:
        q_2_N, v_2_N = self.values[:, :, [turn.prompt_ids[0] for turn in turns]]
        return q_2_N, v_2_N


class Proposing(Collected):
    """Who proposes what was done already, for its value stands in the table."""

    def propose(self, trajectories: Sequence[Trajectory], seed: int) -> list[Trajectory]:
        return list(trajectories)


def test_critic_and_actor_have_the_released_losses_and_gradients(tmp_path: Path) -> None:
    save_policy(tiny_policy("a b c"), tmp_path / "encoder")
    critic: Any = DoubleCritic(DoubleValue(encoder=str(tmp_path / "encoder"), steps=1), seed=0)
    critic.online, critic.target = Table(VALUES), Table(TARGETS).requires_grad_(False)
    episodes = [
        make_trajectory([make_turn([1], [2 * n + k], reward=r) for k, r in enumerate(rewards)], sum(rewards), ordinal=n)
        for n, rewards in enumerate(([-0.25, 1.0], [0.5, -1.0]))
    ]
    critic.estimate = lambda trajectories: None  # as it was before the step
    batch = CriticBatch([], TurnAdvantage(), Proposing(episodes), random.Random(0))
    assert critic.before_update(batch) == pytest.approx(LOSSES, abs=1e-6)
    torch.testing.assert_close(critic.online.gradient, torch.tensor(GRADIENTS), atol=1e-6, rtol=0)

    for turn in (turn for t in episodes for turn in t.turns):
        q, v = (min(of[turn.prompt_ids[0]] for of in two) for two in VALUES)
        turn.estimates |= {"action_value": q, "value": v}
    _, found = slopes(Reinforce(aggregation=Mean(over="sequence")), TurnAdvantage()(episodes), LOGPS)
    assert sum(found, []) == pytest.approx(OF_LOGPS)

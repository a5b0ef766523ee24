"""Both critics beside their authors' code: values that `ilql_loss` (`LLM_RL/algorithms/ilql/base_interface.py`, gamma 0.95, tau 0.7) and `mc_loss`
(`LLM_RL/algorithms/mc_returns/base_interface.py`) of abdulhaim/LMRL-Gym (commit 911d726), without their terms of single tokens, give for these
numbers of five actions, of an episode with three of them and one with two."""

from collections.abc import Sequence

import pytest
import torch
from helpers import make_trajectory, make_turn

from longstride.learner.critics import Moves, StoredEstimates
from longstride.papers.lmrl_gym.method import ExpectileQ, ReturnQ

Q, V = [[0.3, -0.2, 0.9, 0.4, 0.1], [0.1, 0.5, -0.6, 0.7, -0.4]], [[0.2, 0.0, 0.4, -0.3, 0.6]]
TARGETS = [[0.5, 0.25, -0.4, 0.1, 0.8], [0.35, -0.15, 0.6, 0.2, 0.5]]
REWARDS = ([-0.25, 0.5, 1.0], [0.0, -1.0])
LOSSES = {"action_value_loss": 0.27178 + 0.32038003, "value_loss": 0.03295}
OF_Q = [[0.11, -0.216, -0.02, -0.034, 0.22], [0.07, -0.076, -0.32, 0.026, 0.12]]
OF_V = [[-0.021, 0.009, 0.048, -0.056, 0.006]]

LATER = ([-0.4, 0.3, 0.8], [0.1, -1.0])
"""Rewards of which the returns are 0.7, 1.1, 0.8 and -0.9, -1."""
OF_RETURNS, RETURN_LOSS = [-0.08, -0.26, 0.02, 0.26, 0.22], 0.476
"""For the first Q alone: a single one is learned there."""


def estimates() -> tuple[StoredEstimates, torch.Tensor, torch.Tensor]:
    q_2_N, v_1_N = (torch.tensor(of, requires_grad=True) for of in (Q, V))
    return StoredEstimates(q_2_N, v_1_N, torch.tensor(TARGETS), torch.full((1, 5), torch.nan)), q_2_N, v_1_N


def moves(rewards: Sequence[Sequence[float]], discount: float) -> Moves:
    return Moves.of([make_trajectory([make_turn(reward=r) for r in of], sum(of)) for of in rewards], discount)


def test_implicit_q_learning_has_the_released_losses_and_gradients() -> None:
    said, q_2_N, v_1_N = estimates()
    losses = ExpectileQ(expectile=0.7).losses(said, moves(REWARDS, 0.95))
    torch.stack(list(losses.values())).sum().backward()
    assert {name: loss.item() for name, loss in losses.items()} == pytest.approx(LOSSES, abs=1e-6)
    torch.testing.assert_close([q_2_N.grad, v_1_N.grad], [torch.tensor(OF_Q), torch.tensor(OF_V)], atol=1e-6, rtol=0)


def test_returns_have_the_released_loss_and_gradient() -> None:
    said, q_2_N, _ = estimates()
    losses = ReturnQ().losses(said, moves(LATER, 1.0))
    losses["action_value_loss"].backward()
    assert q_2_N.grad is not None and q_2_N.grad[0].tolist() == pytest.approx(OF_RETURNS, abs=1e-6)
    other = (torch.tensor(Q[1]) - torch.tensor([0.7, 1.1, 0.8, -0.9, -1.0])).square().mean().item() / 2
    assert losses["action_value_loss"].item() - other == pytest.approx(RETURN_LOSS, abs=1e-6)

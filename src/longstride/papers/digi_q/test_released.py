"""Digi-Q beside its authors' code: values that `critic_loss` (Bellman, regression) and `actor_loss` (best of N, the threshold of its web
shop) of DigiRL-agent/digiq (`digiq/algorithms/digiq/trainer.py`, commit 8181379) give where Q, V and their targets are these tables, with
discount 0.95."""

from typing import Any

import pytest
import torch
from by_hand import slopes
from helpers import make_trajectory, make_turn

from longstride.learner.critics import Moves, StoredEstimates
from longstride.methods import Reinforce
from longstride.papers.digi_q.method import BestCandidate, FrozenQ

Q, V = [[0.3, -0.2, 0.9, 0.4], [0.1, 0.5, -0.6, 0.7]], [[0.2, 0.0, 0.4, -0.3], [-0.1, 0.6, 0.2, 0.8]]
"""Two Q of four turns, of two episodes, and two V."""
TARGETS = (
    [[0.5, 0.25, -0.4, 0.1], [0.35, -0.15, 0.6, 0.2]],
    [[0.15, 0.45, -0.25, 0.7], [0.55, 0.05, 0.3, -0.1]],
)
LOSSES = {"action_value_loss": 0.87130781 + 1.06038281, "value_loss": 0.238125 + 0.32125}
GRADIENTS = [
    [[0.06125, -0.6, -0.1325, 0.7], [0.15125, -0.25, -0.5025, 0.85]],
    [[-0.15, -0.125, 0.4, -0.2], [-0.225, 0.375, -0.2, 0.3]],
]

CANDIDATES = [[0.3, 0.5, 0.9, 0.7], [0.35, 0.62, 0.41, 0.3], [0.6, 0.64, 0.44, 0.9]]
"""The greater Q of three candidates in four turns, and the greater V there."""
VALUES = [0.2, 0.6, 0.4, 0.8]
LOGPS = [[-1.5, -0.4, -2.0, -0.7], [-1.1, -0.9, -0.3, -0.2], [-0.6, -0.8, -1.9, -1.3]]
OF_LOGPS = [[0, 0, -0.25, 0], [0, 0, 0, 0], [-0.25, 0, 0, -0.25]]


def test_the_critic_has_the_released_losses_and_gradients() -> None:
    episodes = [
        make_trajectory([make_turn(reward=r) for r in rewards], sum(rewards)) for rewards in ([-0.25, 1.0], [0.5, -1.0])
    ]
    q_2_N, v_2_N = (torch.tensor(of, requires_grad=True) for of in (Q, V))
    said = StoredEstimates(q_2_N, v_2_N, *map(torch.tensor, TARGETS))
    losses = FrozenQ().losses(said, Moves.of(episodes, 0.95))
    torch.stack(list(losses.values())).sum().backward()
    assert {name: loss.item() for name, loss in losses.items()} == pytest.approx(LOSSES, abs=1e-6)
    torch.testing.assert_close([q_2_N.grad, v_2_N.grad], list(map(torch.tensor, GRADIENTS)), atol=1e-6, rtol=0)
    assert FrozenQ().of_two(v_2_N).tolist() == pytest.approx([0.2, 0.6, 0.4, 0.8])


def test_the_actor_imitates_what_the_released_one_does_as_much() -> None:
    played = [
        make_trajectory(
            [make_turn([n], estimates={"action_value": q, "value": v}) for q, v in zip(of, VALUES, strict=True)]
        )
        for n, of in enumerate(CANDIDATES)
    ]
    samples = BestCandidate(threshold=0.05)(played)
    taken: Any = [[LOGPS[s.sampled_ids[0]][s.turn]] for s in samples]
    _, slopes_S = slopes(Reinforce(), samples, taken)
    found = {(s.sampled_ids[0], s.turn): slope for s, (slope,) in zip(samples, slopes_S, strict=True)}
    assert [[found.get((n, k), 0.0) for k in range(4)] for n in range(3)] == [pytest.approx(of) for of in OF_LOGPS]

"""VL-DAC beside its authors' code: values that `RolloutStorage.compute_returns` and `PPO.update` of corl-team/VL-DAC
(`a2c_ppo_acktr`, commit 5da2783) give for these rewards, values and log-probabilities, with discount 0.99 and lam 0.95."""

import numpy as np
import pytest
from by_hand import slopes
from helpers import make_trajectory, make_turn

from longstride.core.trajectory import Trajectory
from longstride.methods import Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, REFERENCE
from longstride.papers.vl_dac.recipe import RECIPE

REWARDS = [[0.27, -0.46, -0.92], [-0.97, 0.63], [0.83, 0.21, 0.46, 0.09]]
VALUES = [[0.87, 0.63, -0.99], [0.71, -0.93], [0.46, -0.65, 0.73, 0.08]]
"""Of the turns of three episodes that their environment ended."""
RELEASED = [-1.861311, -2.004265, 0.07, -1.13352, 1.56, 1.054578, 1.412098, -0.181395, 0.01]
WHITENED = [-1.306786, -1.414025, 0.142016, -0.760823, 1.259762, 0.880612, 1.148811, -0.046572, 0.097006]

OLD = [[-0.5, -1.2, -2.0], [-0.7, -0.9], [-1.5, -0.2, -0.8], [-0.4, -0.4], [-3.0, -0.1]]
NEW = [[-0.45, -1.5, -1.9], [-0.9, -0.6], [-1.2, -0.25, -0.8], [-0.45, -0.3], [-0.2, -0.15]]
START = [[-0.6, -1.0, -2.2], [-0.7, -0.5], [-1.0, -0.3, -0.9], [-0.2, -0.6], [-2.5, -0.3]]
OF_TURNS = [0.5, -1.1, 0.8, -0.4, -0.7]
"""Advantages of five turns. The first ratio of the last is above 10."""
GRADIENTS = [
    [-0.173355, -0.132119, 0.003456],
    [-0.004428, 0.740319],
    [-0.002952, -0.253011, -0.265398],
    [0.184565, 0.226218],
    [0.017995, 0.335716],
]


def played() -> list[Trajectory]:
    found = []
    for k, (rewards, values) in enumerate(zip(REWARDS, VALUES, strict=True)):
        turns = [make_turn(reward=r, estimates={"value": v}) for r, v in zip(rewards, values, strict=True)]
        found.append(make_trajectory(turns, sum(rewards), ordinal=k))
    return found


def test_advantages_of_turns_are_the_released_ones() -> None:
    credit = RECIPE.credit.replace(discount=0.99, lam=0.95)
    found = [s.advantages[0] for s in credit.replace(whiten=False)(played())]
    assert found == pytest.approx(RELEASED, abs=1e-6)
    n = len(RELEASED)  # its deviation has the divisor n - 1; turns of one token weigh alike in ours
    whitened = [s.advantages[0] for s in credit(played())]
    assert whitened == pytest.approx([x * (n / (n - 1)) ** 0.5 for x in WHITENED], abs=1e-5)


def test_the_gradient_of_a_turn_is_the_released_one() -> None:
    samples = [
        Sample([0], [1] * len(old), {ADVANTAGES: [a] * len(old), BEHAVIOUR: old, REFERENCE: start}, episode=n)
        for n, (old, start, a) in enumerate(zip(OLD, START, OF_TURNS, strict=True))
    ]
    _, found = slopes(RECIPE.loss, samples, NEW)
    np.testing.assert_allclose(sum(found, []), np.array(sum(GRADIENTS, [])) / len(samples), atol=1e-6)

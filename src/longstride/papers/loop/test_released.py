"""LOOP beside its authors' code: values that `_compute_adv_estimates` and `_surrogate_loss` of apple/ml-loop
(`phi_agents/rl/train.py`, commit 6ade7b9) give for these returns and log-probabilities, at its epsilon of 0.1.

It divides the loss of a rollout by its own tokens and the sum over rollouts by a constant: `Mean(over="episode")`. The
recipe here has a mean over all tokens. Its term of a whole rollout is one number, and that of `TrajectoryPPO` is
shared by the tokens, so that there `Constant` per episode is what it is.
"""

import numpy as np
import pytest
from by_hand import slopes
from helpers import make_trajectory

from longstride.methods import PPO, Aggregation, Constant, Mean, Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR
from longstride.papers.loop.method import TrajectoryPPO
from longstride.papers.loop.recipe import HIGH, LOW, RECIPE

RETURNS = ([1.0, 0.75, 0.5, 0.5, 0.25, 0.0], [0.5, 0.5, 0.5, 0.5, 0.5, 0.54], [1.0] * 6)
RELEASED = [[0.6, 0.3, 0.0, 0.0, -0.3, -0.6], [-0.008] * 5 + [0.04], [0.0] * 6]

OLD = [[-0.5, -1.2, -2.0, -0.3], [-0.7, -0.9], [-1.5, -0.2, -0.8]]
NEW = [[-0.45, -1.5, -1.9, -0.6], [-0.9, -0.6], [-1.2, -0.25, -0.8]]


def test_advantages_are_the_released_ones_and_small_ones_are_none() -> None:
    played = [make_trajectory(1, r, ordinal=k, group=g) for g, of in enumerate(RETURNS) for k, r in enumerate(of)]
    found = np.reshape([s.advantages[0] for s in RECIPE.credit(played)], (3, 6))
    expected = np.array(RELEASED)
    expected[np.abs(expected) < 0.01] = 0.0  # its `abs_adv_threshold`, below which a rollout is left out
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("loss", "aggregation", "losses", "gradients"),
    [
        (
            PPO,
            Mean(over="episode"),
            [-0.544936, 1.016527, -0.305123],
            [[-0.157691, -0.111123, 0.0, -0.111123], [0.0, 0.607436], [0.0, -0.095123, -0.1]],
        ),
        (
            TrajectoryPPO,
            Constant(per="episode"),
            [-0.382577, 0.994654, -0.33],
            [[-0.382577] * 4, [0.994654] * 2, [0.0] * 3],
        ),
    ],
)
def test_losses_and_gradients_are_the_released_ones(
    loss: type[PPO], aggregation: Aggregation, losses: list[float], gradients: list[list[float]]
) -> None:
    samples = [
        Sample([0], [1] * len(old), {ADVANTAGES: [a] * len(old), BEHAVIOUR: old}, episode=n)
        for n, (old, a) in enumerate(zip(OLD, (0.6, -0.9, 0.3), strict=True))
    ]
    value, found = slopes(loss(clip_low=LOW, clip_high=HIGH, aggregation=aggregation), samples, NEW)
    assert value == pytest.approx(np.mean(losses), abs=1e-6)
    np.testing.assert_allclose(sum(found, []), np.array(sum(gradients, [])) / 3, atol=1e-6)

"""Advantages beside ROLL, the framework of the paper: values that `reward_norm` of alibaba/ROLL
(`roll/utils/functionals.py`, commit 8eb27cc) gives for three groups of four answers. Its deviations have the divisor
n - 1 and 1e-6 added, ours n."""

import pytest

from longstride.methods import group_advantages
from longstride.methods.advantages import Baseline, Normalize

REWARDS = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.5, 1.0, 0.25, 1.0]


@pytest.mark.parametrize(
    ("baseline", "normalize", "n", "released"),
    [
        (
            "mean",
            "batch_std",
            12,
            [1.036992, -1.036992, -1.036992, 1.036992, -0.518496, -0.518496, -0.518496, 1.555488],
        ),
        ("mean", "std", 4, [0.866024, -0.866024, -0.866024, 0.866024, -0.499999, -0.499999, -0.499999, 1.499997]),
        ("batch", "batch_std", 12, [1.0802, -0.993784, -0.993784, 1.0802, -0.993784, -0.993784, -0.993784, 1.0802]),
    ],
)
def test_advantages_are_the_released_ones_up_to_the_divisor_of_a_deviation(
    baseline: Baseline, normalize: Normalize, n: int, released: list[float]
) -> None:
    """Of the first two groups; Lite PPO's is the first case."""
    found = group_advantages(REWARDS, [0] * 4 + [1] * 4 + [2] * 4, baseline, normalize)
    assert found[:8] == pytest.approx([x * (n / (n - 1)) ** 0.5 for x in released], abs=1e-5)

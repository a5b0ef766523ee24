"""The law of sizes beside the authors' code: values that `LogLinearKn.model` of
tanzelin430/Mathematical-Reasoning-RL-Scaling-Law (`analysis/src/fit/models/loglinear_kn.py`, commit 431002b) gives for
k_max = 0.14, N0 = 4e9 and offsets of sizes that lie on a line, 2 - 0.25 log10 N, as ours do."""

import numpy as np
import pytest

from longstride.scaling import SizedPower, fit

SIZES, AMOUNTS = (0.5e9, 1.5e9, 3e9, 7e9, 14e9, 32e9, 72e9), (1e3, 1e4, 1e5)
RELEASED = [
    [0.60060761, 0.57947576, 0.55908742],
    [0.39032982, 0.35747849, 0.32739202],
    [0.28230573, 0.24587801, 0.21415079],
    [0.18683265, 0.1521815, 0.12395697],
    [0.13702548, 0.10663811, 0.08298958],
    [0.10008735, 0.07515099, 0.05642743],
    [0.07722753, 0.05690371, 0.04192847],
]


def test_what_the_released_law_gives_is_fitted_by_its_own_numbers() -> None:
    x = np.array([(size, amount) for size in SIZES for amount in AMOUNTS])
    found = fit(SizedPower(), x, np.ravel(RELEASED), resamples=20).values
    assert found == pytest.approx({"rate": 0.14, "half_size": 4e9, "offset": 2 * np.log(10), "slope": -0.25}, rel=1e-4)

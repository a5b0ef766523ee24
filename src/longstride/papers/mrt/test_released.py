"""MRT beside its authors' code: the areas that a cell of `analysis/code/regret.ipynb` of CMU-AIRe/MRT (commit 1815a8c)
gives for these traces, within, across and beyond their ends."""

import pytest

from longstride.strategies.anytime import regret

TRACES = [
    ([200, 1000, 1200, 1900, 2300], [0.625, 1.0, 0.5, 0.625, 1.0]),
    ([2100, 2200, 2300, 3700], [0.0, 0.375, 0.875, 0.5]),
    ([2900, 3000], [0.125, 0.0]),
    ([100, 300, 1200, 1900, 2000], [0.125, 0.0, 0.75, 0.5, 0.625]),
]


@pytest.mark.parametrize(
    ("budget", "areas"),
    [
        (500, [0.5421875, 0.0, 0.01077586, 0.07083333]),
        (1600, [0.67299107, 0.0, 0.03448276, 0.39229911]),
        (4000, [0.8203125, 0.2984375, 0.046875, 0.525]),
    ],
)
def test_regret_is_one_less_the_released_area(budget: int, areas: list[float]) -> None:
    assert [1 - regret(*trace, budget) for trace in TRACES] == pytest.approx(areas, abs=1e-8)

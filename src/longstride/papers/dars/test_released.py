"""DARS beside its authors' code: what `schedule_ET` and `schedule_HW` of yangzhch6/DARS
(`verl/verl/trainer/ppo/ray_dars_trainer.py`, commit 9b21b71) return for groups of 8 and 16 with 0 successes and more."""

from typing import Literal

import pytest

from longstride.papers.dars.method import DifficultyAdaptive


@pytest.mark.parametrize(
    ("target", "n", "most", "released"),
    [
        ("equal", 8, 32, [24, 11, 3, 1]),
        ("equal", 8, 64, [27, 11, 3, 1]),
        ("equal", 16, 64, [48, 48, 21, 11, 6, 3, 2, 1]),
        ("hardness", 8, 32, [24, 24, 8, 3]),
        ("hardness", 8, 64, [56, 24, 8, 3]),
        ("hardness", 16, 64, [48, 48, 48, 27, 16, 10, 6, 3]),
    ],
)
def test_as_many_more_episodes_are_played_as_in_the_release(
    target: Literal["equal", "hardness"], n: int, most: int, released: list[int]
) -> None:
    sampler = DifficultyAdaptive(target=target, most=most)
    assert [sampler.extra(n, solved) for solved in range(n + 1)] == released + [0] * (n + 1 - len(released))

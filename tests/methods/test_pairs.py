"""Siblings as pairs, by the duels between them."""

import pytest
from helpers import make_trajectory, make_turn

from longstride.core.errors import ConfigError
from longstride.core.trajectory import DUELS, Trajectory
from longstride.methods import SiblingPairs
from longstride.methods.preferences import PREFERRED


def group(*won: dict[str, float]) -> list[Trajectory]:
    """Siblings, each with the shares of duels that it won, and of two turns."""
    return [
        make_trajectory([make_turn([n]), make_turn([n])], sum(of.values()), ordinal=n, evidence={DUELS: of})
        for n, of in enumerate(won)
    ]


WON = ({"1": 1.0, "2": 0.0, "3": 0.5}, {"0": 0.0, "2": 1.0, "3": 0.25}, {"0": 1.0, "1": 0.0, "3": 0.5}, {})


def pairs_of(credit: SiblingPairs, played: list[Trajectory]) -> list[tuple[int, int]]:
    samples = credit(played)
    found: dict[int, dict[bool, int]] = {}
    for s in samples:
        assert s.advantages == s.streams[PREFERRED]
        found.setdefault(s.pair, {})[bool(s.streams[PREFERRED][0])] = s.episode
    assert len(samples) == 4 * len(found), "two turns a side"
    return [(of[True], of[False]) for of in found.values()]


@pytest.mark.parametrize(
    ("which", "pairs"),
    [("neighbours", [(0, 1)]), ("all", [(0, 1), (2, 0), (1, 2), (3, 1)]), ("extremes", [(0, 3)])],
)
def test_who_won_is_preferred_and_an_even_duel_is_no_pair(which: str, pairs: list[tuple[int, int]]) -> None:
    assert pairs_of(SiblingPairs.model_validate({"which": which}), group(*WON)) == pairs


def test_a_reward_without_duels_is_refused() -> None:
    with pytest.raises(ConfigError, match="set reward.type=duels"):
        SiblingPairs()([make_trajectory(ordinal=0), make_trajectory(ordinal=1)])

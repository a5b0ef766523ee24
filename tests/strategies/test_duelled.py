"""How far a policy can be beaten, by hand."""

import pytest
from helpers import make_trajectory

from longstride.core.trajectory import Trajectory
from longstride.rewards import ByReward, InTurn
from longstride.strategies.duelled import Duelled


def played(*answers: str) -> list[Trajectory]:
    return [make_trajectory(1, answer=answer) for answer in answers]


def test_one_answer_for_ever_is_beaten_by_the_kind_that_beats_it_and_all_kinds_by_none() -> None:
    strategy = Duelled(preference=InTurn(sure=0.9))
    assert strategy.exploitability(played("4", "4", "7")) == pytest.approx(0.4)
    assert strategy.exploitability(played("3", "4", "5")) == pytest.approx(0.0)
    # kind 0 twice and kind 1 once: kind 1 wins 0.9, 0.9, 0.5
    assert strategy.exploitability(played("3", "6", "4")) == pytest.approx(2.3 / 3 - 0.5)


def test_no_answer_is_right_and_of_a_kind_that_beats_the_right_one() -> None:
    right, wrong = played("4", "4"), played("4", "4")
    for t in right:
        t.reward = 1.0
    strategy = Duelled(preference=InTurn(sure=0.9, right=0.75))
    assert strategy.exploitability(right) == pytest.approx(0.0)  # a wrong one of kind 2 wins 0.25 * 0.9
    assert strategy.exploitability([*wrong, *right]) == pytest.approx((0.5 + 0.75 + 0.25 * 0.5) / 2 - 0.5)
    assert strategy.exploitability(wrong) == pytest.approx(0.75 + 0.25 * 0.9 - 0.5)  # a right one, of whatever kind
    weak = Duelled(preference=InTurn(sure=0.9, right=0.25))
    assert weak.exploitability(right) == pytest.approx(0.75 * 0.9 - 0.5)
    assert Duelled(preference=InTurn(right=1.0)).exploitability(wrong) == pytest.approx(0.5)


def test_where_a_verifier_prefers_a_right_answer_beats_what_is_wrong() -> None:
    strategy = Duelled(preference=ByReward())
    wrong = played("4", "4")
    assert strategy.exploitability(wrong) == pytest.approx(0.5)
    for t in wrong:
        t.reward = 1.0
    assert strategy.exploitability(wrong) == 0.0
    assert strategy.exploitability([]) is None

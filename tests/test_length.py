"""The length penalty: rewards by hand, and what group-relative credit makes of them."""

from math import exp

import pytest
from longstride.methods.length import LengthPenalty

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.methods import Credit, GroupRelative

TASK = Task(id="t", source="s", goal="g", start="")


def episode(reward, length, group=0, stop=StopReason.ANSWERED):
    turn = Turn([0], [1] * length, [-1.0] * length, [0] * length, "", "text")
    return Trajectory(TASK, 0, 0, Budget(), [turn], stop, reward=reward, group=group)


def sigmoid(z):
    return 1 / (1 + exp(-z))


def test_a_success_earns_less_the_longer_it_is_beside_other_successes():
    """Successes of 2, 4 and 6 tokens: mean 4, deviation sqrt(8 / 3). A failure of 60 tokens moves nothing."""
    group = [episode(1, 2), episode(1, 4), episode(1, 6), episode(0, 60)]
    z = 2 / (8 / 3) ** 0.5
    assert LengthPenalty(weight=0.4).rewards(group) == pytest.approx(
        [1 - 0.4 * sigmoid(-z), 1 - 0.4 / 2, 1 - 0.4 * sigmoid(z), 0]
    )


def test_groups_are_apart_and_a_success_alone_loses_half_the_weight():
    rewards = LengthPenalty(weight=0.2).rewards([episode(1, 3), episode(1, 50, 1), episode(0, 9, 1)])
    assert rewards == pytest.approx([0.9, 0.9, 0])


def test_the_weights_are_those_of_group_relative_credit_for_these_rewards():
    """Of one length: 1 - 0.2 / 2 against 0, without a deviation to divide by."""
    group = [episode(1, 2), episode(0, 1), episode(0, 3, stop=StopReason.INFRA_FAILURE)]
    samples = LengthPenalty(weight=0.2, credit=GroupRelative(scale="none"))(group)
    assert [s.weights for s in samples] == [pytest.approx([0.45] * 2), pytest.approx([-0.45])]
    assert group[0].reward == 1


def test_without_weight_it_is_the_credit_inside():
    group = [episode(1, 2), episode(1, 9), episode(0, 4)]
    assert LengthPenalty(weight=0)(group) == GroupRelative()(group)


def test_it_is_built_again_from_its_data():
    credit = LengthPenalty(weight=0.4, credit=GroupRelative(centre="leave_one_out", scale="none"))
    assert build(Credit, credit.as_data()) == credit

"""Samples, what a credit's targets are unless it says otherwise, and what no replay admits."""

import random
from collections.abc import Sequence

import pytest
from helpers import Collected, make_trajectory, make_turn

from longstride.core.budget import StopReason
from longstride.core.trajectory import Trajectory
from longstride.methods import Credit, OnPolicy, Replay, Sample, demonstration
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, turn_rewards
from longstride.papers.tti.method import TTIReplay


class Nothing(Credit):
    """Trains nothing."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        return []


def test_a_sample_of_a_turn_knows_what_was_read_and_sampled_and_whose_turn_it_was():
    turn = make_turn([4, 5], [3], behaviour_logprobs=[-0.5, -2.0])
    episode = make_trajectory([make_turn(), turn], ordinal=7, group=4)
    assert Sample.of(episode, turn, [1.0, 2.0], margin=[0.1, 0.2]) == Sample(
        [3], [4, 5], {ADVANTAGES: [1.0, 2.0], BEHAVIOUR: [-0.5, -2.0], "margin": [0.1, 0.2]}, episode=7, group=4, turn=1
    )


def test_turns_that_are_equal_are_told_apart_by_their_number():
    episode = make_trajectory([make_turn() for _ in range(3)])
    assert [Sample.of(episode, turn, [1.0]).turn for turn in episode.turns] == [0, 1, 2]


@pytest.mark.parametrize(
    ("streams", "message"),
    [
        ({ADVANTAGES: [1.0]}, "advantages has 1 for 2 tokens"),
        ({}, "advantages has 0 for 2 tokens"),
        ({ADVANTAGES: [1.0, 1.0], "margin": [0.0] * 3}, "margin has 3 for 2 tokens"),
    ],
)
def test_every_stream_of_a_sample_has_one_number_a_sampled_token(streams, message):
    with pytest.raises(ValueError, match=message):
        Sample([1], [5, 6], streams)


def test_a_demonstration_weighs_the_same_on_every_token_and_was_not_sampled():
    sample = demonstration([1, 2], [3, 4], weight=0.5, episode=6)
    assert sample == Sample([1, 2], [3, 4], {ADVANTAGES: [0.5, 0.5]}, episode=6, group=6)


def test_the_verdict_of_an_episode_is_earned_by_its_last_turn():
    turns = [make_turn(reward=0.25), make_turn(reward=-0.5), make_turn(reward=0.125)]
    assert turn_rewards(make_trajectory(turns, reward=1.0)) == [0.25, -0.5, 1.25]
    assert turn_rewards(make_trajectory([], reward=1.0)) == []


def test_unless_a_credit_says_otherwise_a_value_should_be_what_was_earned_from_its_turn_on():
    turns = [make_turn(reward=0.25), make_turn([], reward=-0.5), make_turn()]
    ended, failed = make_trajectory(turns, reward=1.0), make_trajectory(turns, stop=StopReason.INFRA_FAILURE)
    assert Nothing().targets([ended, failed, make_trajectory([])]) == [[1.0, 0.75, 1.25], [], []]
    assert Nothing().estimates == frozenset()


@pytest.mark.parametrize("replay", [TTIReplay(), OnPolicy()])
def test_no_replay_admits_an_episode_that_infrastructure_ended(replay: Replay):
    failed = make_trajectory(reward=1.0, stop=StopReason.INFRA_FAILURE)
    assert not replay.admits(failed.record())
    assert replay.admits(make_trajectory(reward=1.0, stop=StopReason.TURNS).record())


def test_on_policy_replay_draws_what_is_fresh_and_nothing_when_nothing_is():
    kept = [make_trajectory(ordinal=n).record() for n in range(5)]
    draw = lambda fresh: OnPolicy().draw(kept, fresh, random.Random(0), Collected())  # noqa: E731
    assert [record.ordinal for record in draw(2)] == [3, 4]
    assert draw(0) == []

"""Samples and how they are made of a credit's numbers, and which episodes and groups replay chooses."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from helpers import Collected, make_trajectory, make_turn

from longstride.core.budget import StopReason
from longstride.core.errors import OwnCodeError
from longstride.core.trajectory import Trajectory
from longstride.methods import (
    Advantage,
    Credit,
    MixedGroups,
    OnPolicy,
    Replay,
    Sample,
    demonstration,
    turn_rewards,
    turn_states,
)
from longstride.methods.base import ADVANTAGES, BEHAVIOUR
from longstride.papers.tti.method import TTIReplay


class Nothing(Credit):
    """Trains nothing."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        return [[None] * t.length for t in played]


class Said(Credit):
    """The same numbers for every episode, and the same margins."""

    numbers: Any = ()
    margins: Any = None

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        return [self.numbers for _ in played]

    def streams(self, played: Sequence[Trajectory]) -> Mapping[str, Sequence[Sequence[Advantage]]]:
        return {} if self.margins is None else {"margin": [self.margins for _ in played]}


def test_a_sample_of_a_turn_knows_what_was_read_and_sampled_and_whose_turn_it_was():
    turn = make_turn([4, 5], [3], behaviour_logprobs=[-0.5, -2.0])
    episode = make_trajectory([make_turn(), turn], ordinal=7, group=4)
    assert Sample.of(episode, 1, [1.0, 2.0], margin=[0.1, 0.2]) == Sample(
        [3], [4, 5], {ADVANTAGES: [1.0, 2.0], BEHAVIOUR: [-0.5, -2.0], "margin": [0.1, 0.2]}, episode=7, group=4, turn=1
    )


TURNS = [make_turn([4, 5]), make_turn([]), make_turn([6]), make_turn([7])]


def test_a_number_of_a_turn_is_that_of_all_its_tokens_and_none_leaves_it_out():
    episodes = [make_trajectory(TURNS), make_trajectory(3, stop=StopReason.INFRA_FAILURE)]
    samples = Said(numbers=[1, 9, None, [0.5]], margins=[[0.1, 0.2], None, None, 3])(episodes)
    assert [(s.turn, s.advantages, s.streams["margin"]) for s in samples] == [
        (0, [1.0, 1.0], [0.1, 0.2]), (3, [0.5], [3.0]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("numbers", "margins", "message"),
    [
        ([1, 1, 1], None, r"Said gives advantages for \[3\] turns; the episodes have \[4\]"),
        ([1, 1, 1, 1], [0], r"Said gives margin for \[1\] turns"),
        ([[1, 2, 3], 1, 1, 1], None, "Said gives 3 advantages for a turn of 2 sampled tokens"),
        ([1, 1, 1, 1], [0, 0, None, 0], "Said gives none margin for a turn of 1 sampled tokens"),
    ],
)
def test_a_credit_whose_numbers_do_not_fit_its_episodes_is_named(numbers, margins, message):
    with pytest.raises(OwnCodeError, match=message):
        Said(numbers=numbers, margins=margins)([make_trajectory(TURNS)])


@pytest.mark.parametrize("given", [None, 1.0, [1.0]])
def test_a_credit_that_gives_no_number_for_each_turn_is_named(given):
    class Odd(Said):
        def advantages(self, played: Sequence[Trajectory]) -> Any:
            return given

    with pytest.raises(OwnCodeError, match="Odd gives .* for advantages; expected of each episode a list of numbers"):
        Odd()([make_trajectory(TURNS)])


def test_the_state_of_a_turn_is_where_it_was_and_what_it_saw_but_for_the_error_of_the_turn_before():
    turns = [
        make_turn(observation="page\nerror: no", url="/a", error="no such link"),
        make_turn(observation="page\nerror: no such link", url="/a", error="no such link"),
        make_turn(observation="page\nerror: another", url="/b"),
    ]
    assert turn_states(make_trajectory(turns)) == [
        ("/a", "page\nerror: no"), ("/a", "page"), ("/b", "page\nerror: another"),
    ]  # fmt: skip
    assert turn_states(make_trajectory([])) == []


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


def test_mixed_groups_are_those_whose_rewards_or_outcomes_differ_in_the_order_that_they_came():
    rewards_and_groups = ((1, 0), (2, 1), (1, 0), (1, 1), (0, 2), (1 + 1e-9, 0), (0.5, 2))
    episodes = [make_trajectory(reward=r, group=g, ordinal=n) for n, (r, g) in enumerate(rewards_and_groups)]
    experience = Collected(episodes)

    def drawn(replay: Replay) -> list[int]:
        return [r.ordinal for r in replay.draw(experience.records, 7, random.Random(0), experience)]

    assert drawn(MixedGroups()) == [1, 3, 4, 6]  # the rewards of group 0 are equal
    assert drawn(MixedGroups(by="success")) == [4, 6]  # both of group 1 are successes, of other rewards
    assert drawn(OnPolicy()) == list(range(7))

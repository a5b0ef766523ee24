"""Preferences, and the reward that is made of them: chances by hand, what is written down, and what is not judged."""

from collections.abc import Sequence
from itertools import combinations
from typing import ClassVar

import pytest
from helpers import make_trajectory, make_turn

from longstride.core.component import build
from longstride.core.errors import JudgeFailure
from longstride.core.trajectory import DUELS, Trajectory, usages
from longstride.rewards import (
    AgainstRivals,
    AskedPair,
    ByReward,
    Duels,
    EvaluatorFirst,
    Generative,
    InTurn,
    Judge,
    Preference,
    Reward,
)
from longstride.rewards.scorers import Answered, Question, Reply


def answers(*said: str | None, rewards: Sequence[float] = ()) -> list[Trajectory]:
    earned = rewards or [0.0] * len(said)
    return [make_trajectory(1, r, ordinal=n, answer=a) for n, (a, r) in enumerate(zip(said, earned, strict=True))]


def test_a_verifier_prefers_what_earned_more_and_its_noise_turns_labels_round() -> None:
    a, b, c = answers("x", "y", "z", rewards=(1.0, 0.0, 1.0))
    assert ByReward()([(a, b), (b, a), (a, c)]) == [1.0, 0.0, 0.5]
    assert ByReward(noise=0.2)([(a, b), (b, a), (a, c)]) == pytest.approx([0.8, 0.2, 0.5])
    assert ByReward(sharpness=2.0)([(a, b)]) == [pytest.approx(0.880797)]


def test_kinds_beat_one_another_in_a_circle() -> None:
    a, b, c, d, none = answers("3", "4", "5", "6", None)
    pairs = [(b, a), (c, b), (a, c), (a, b), (a, d), (a, none), (none, a), (none, none)]
    assert InTurn(sure=0.9)(pairs) == pytest.approx([0.9, 0.9, 0.9, 0.1, 0.5, 1.0, 0.0, 0.5])
    four = InTurn(kinds=4)
    assert four([(b, a), (c, a)]) == pytest.approx([0.9, 0.5])  # no neighbours: even
    assert four.kind("1" * 640) == int("1" * 640) % 4 and four.kind("1" * 5000) in range(4)
    assert four.kind("red") == four.kind(" Red. ") != InTurn(kinds=5).kind("blue") + 9


def test_with_the_weight_of_the_verifier_the_circle_goes() -> None:
    a, b = answers("3", "4", rewards=(1.0, 0.0))
    chances = [InTurn(right=right)([(a, b)])[0] for right in (0.0, 0.5, 1.0)]
    assert chances == pytest.approx([0.1, 0.55, 1.0])


@pytest.mark.parametrize("preference", [ByReward(noise=0.1), InTurn(), InTurn(right=0.3)])
def test_the_chances_of_a_pair_both_ways_add_up_to_one(preference: Preference) -> None:
    pairs = list(combinations(answers("1", "2", "blue", None, rewards=(1.0, 0.0, 0.0, 0.0)), 2))
    there, back = preference(pairs), preference([(b, a) for a, b in pairs])
    assert [x + y for x, y in zip(there, back, strict=True) if x is not None and y is not None] == pytest.approx(
        [1.0] * 6
    )


class Longer(Judge):
    """Prefers the longer answer, and has no say about `broken`."""

    sampled: ClassVar[int] = 3
    read: ClassVar[int] = 20

    def ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        def reply(q: Question) -> Answered:
            first, second = q.about["first"], q.about["second"]
            if "broken" in (first, second):
                return JudgeFailure("nothing to judge")
            return Reply((0.8, 0.2) if len(first) > len(second) else (0.2, 0.8), self.sampled, self.read)

        return [reply(q) for q in questions]


def test_a_judge_is_asked_in_both_orders_and_what_it_cannot_judge_is_no_chance() -> None:
    a, b, broken = answers("long one", "short", "broken")
    assert AskedPair(judge=Longer())([(a, b), (b, a), (a, broken)]) == [pytest.approx(0.8), pytest.approx(0.2), None]


class SureOfShort(Judge):
    """Is shown whole turns, and says how good each is: the shorter, the better."""

    @property
    def reads(self):
        return "turn"

    def ask(self, questions: Sequence[Question], seed: int) -> list[Answered]:
        return [Reply((1 / len(q.about["answer"]), 0.0)) for q in questions]


def test_a_judge_that_says_how_good_each_is_prefers_by_the_difference_and_is_shown_what_it_reads() -> None:
    a, b = (make_trajectory([make_turn(text=text)], answer="same") for text in ("xy", "wxyz"))
    chances = AskedPair(judge=SureOfShort(), scorer=Generative(reasons=0))([(a, b), (b, a)])
    assert chances == pytest.approx([0.5 + (1 / 2 - 1 / 4) / 2, 0.5 - (1 / 2 - 1 / 4) / 2])


def test_an_episode_earns_the_share_of_its_siblings_that_it_is_preferred_to() -> None:
    group = answers("3", "4", "5", "4", rewards=(1.0, 0.0, 0.0, 0.0))
    verdicts = Duels(preference=InTurn(), labels=False).compare(group)
    assert [v.reward for v in verdicts] == pytest.approx([(0.1 + 0.9 + 0.1) / 3, 1.5 / 3, 1.9 / 3, 1.5 / 3])
    assert [v.success for v in verdicts] == [True, False, False, False]
    assert [v.terms["task"] for v in verdicts] == [1.0, 0.0, 0.0, 0.0]
    assert verdicts[0].evidence[DUELS] == pytest.approx({"1": 0.1, "2": 0.9, "3": 0.1})


def test_labels_are_drawn_once_by_their_chances_and_are_the_same_for_both_sides() -> None:
    reward = Duels(preference=InTurn(), labels=True)
    won = 0
    for n in range(200):
        group = answers("4", "3")
        for t in group:
            t.ordinal += 2 * n
        first, second = reward.compare(group)
        assert first.reward + second.reward == 1 and first.reward in (0.0, 1.0)
        assert reward.compare(group) == [first, second]
        won += int(first.reward)
    assert 160 < won < 198  # 180 of 200, four deviations of 4.2


def test_an_episode_earns_the_share_of_its_rivals_that_it_is_preferred_to() -> None:
    group = answers("3", "4", "5", "4")
    for t in group[2:]:
        t.role = "earlier"
    verdicts = AgainstRivals(preference=InTurn(), labels=False).compare(group)
    assert [v.reward for v in verdicts] == pytest.approx([(0.9 + 0.1) / 2, (0.1 + 0.5) / 2, (0.1 + 0.9) / 2, 1.4 / 2])
    assert verdicts[0].evidence[DUELS] == pytest.approx({"2": 0.9, "3": 0.1}), "none with the policy's own"
    alone = AgainstRivals(preference=InTurn()).compare(answers("3", "4", "5", "4"))
    assert [v.reward for v in alone] == [0.5] * 4


def test_who_says_nothing_loses_unasked_and_turns_keep_what_they_earned() -> None:
    group = answers("long one", "short", None)
    group[0].turns = [make_turn(reward=0.25)]
    verdicts = Duels(preference=AskedPair(judge=Longer()), labels=False).compare(group)
    assert [v.reward for v in verdicts] == pytest.approx([0.9 - 0.25, 0.6, 0.0])


def test_what_the_judge_of_duels_takes_is_counted_once() -> None:
    group = answers("long one", "short", "middle")
    Duels(preference=AskedPair(judge=Longer())).compare(group)
    taken = usages(group)["judge_usage"]
    assert (taken.requests, taken.sampled, taken.read) == (6, 6 * Longer.sampled, 6 * Longer.read)


def test_tasks_without_an_evaluator_are_duelled_where_that_is_the_other_reward() -> None:
    group = answers("long one", "short")
    reward = EvaluatorFirst(otherwise=Duels(preference=AskedPair(judge=Longer()), labels=False))
    assert [v.reward for v in reward.compare(group) or ()] == pytest.approx([0.8, 0.2])
    for t in group:
        t.task = t.task.model_copy(update={"evaluator": {"type": "exact"}})
    assert reward.compare(group) is None, "its own evaluator judges"


def test_an_answer_of_which_no_pair_was_judged_has_no_reward() -> None:
    group = answers("long one", "short", "broken")
    with pytest.raises(JudgeFailure, match="asked_pair judged no pair of 1 of the 3 answers"):
        Duels(preference=AskedPair(judge=Longer())).compare(group)


@pytest.mark.parametrize("preference", [ByReward(noise=0.1), InTurn(kinds=5), AskedPair(judge=Longer())])
def test_it_is_built_again_from_its_data(preference: Preference) -> None:
    reward = Duels(preference=preference)
    assert build(Reward, reward.as_data()) == reward

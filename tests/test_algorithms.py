"""Filtered behaviour cloning and its replay."""

import random
from collections import Counter

import pytest

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.methods import FilteredBC, OnPolicy, Replay, Sample, TTIReplay


def turn(ids: list[int], action: str | None = "click [1]", changed: bool = True) -> Turn:
    return Turn([1, 2, 3], ids, [-0.5] * len(ids), [0] * len(ids), "page", "text", action=action, changed=changed)


def episode(
    ordinal: int = 0,
    source: str = "web/shop",
    reward: float = 1.0,
    answer: str | None = "red",
    stop: StopReason = StopReason.ANSWERED,
    turns: list[Turn] | None = None,
    task: str = "t",
) -> Trajectory:
    return Trajectory(
        task=Task(id=task, source=source, goal="g", start="s"),
        ordinal=ordinal,
        seed=0,
        budget=Budget(),
        turns=turns or [turn([7], f"answer {answer}")],
        stop=stop,
        answer=answer,
        reward=reward,
    )


def of_length(n: int, task: str) -> Trajectory:
    return episode(task=task, turns=[turn([7]) for _ in range(n)])


def test_each_turn_is_a_sample_whose_tokens_weigh_one_together():
    samples = FilteredBC()([episode(turns=[turn([5, 6, 7, 8]), turn([9])]), episode(turns=[turn([4, 4])])])
    assert [s.weights for s in samples] == [[0.25] * 4, [1.0], [0.5, 0.5]]
    assert samples[0] == Sample([1, 2, 3], [5, 6, 7, 8], [0.25] * 4, [-0.5] * 4)
    assert [s.turn for s in samples] == [0, 1, 0]


def test_turns_that_are_equal_are_told_apart():
    t = episode(turns=[turn([5]), turn([5]), turn([5])])
    assert [Sample.of(t, u, [1.0]).turn for u in t.turns] == [0, 1, 2]


def test_text_that_could_not_be_parsed_and_turns_without_tokens_are_not_imitated():
    samples = FilteredBC()([episode(turns=[turn([5], action=None), turn([]), turn([6])])])
    assert [s.sampled_ids for s in samples] == [[6]]


def test_the_repetition_filter_leaves_out_turns_without_effect_but_never_the_last():
    turns = [turn([5], changed=False), turn([6]), turn([7], "answer red", changed=False)]
    assert [s.sampled_ids for s in FilteredBC(drop_unchanged=True)([episode(turns=turns)])] == [[6], [7]]
    assert [s.sampled_ids for s in FilteredBC()([episode(turns=turns)])] == [[5], [6], [7]]


def test_failures_are_not_imitated_whatever_the_replay_let_through():
    assert FilteredBC()([episode(reward=0.0), episode(stop=StopReason.INFRA_FAILURE)]) == []


def test_a_sample_without_a_weight_for_each_sampled_token_is_refused():
    with pytest.raises(ValueError, match="2 tokens, 1 weights"):
        Sample([1], [5, 6], [1.0], [0.0, 0.0])


def test_tti_admits_successes_that_do_not_end_with_not_available():
    admits = TTIReplay().admits
    assert not admits(episode(reward=0.0))
    assert not admits(episode(reward=1.0, answer="N/A"))
    assert admits(episode(reward=1.0))


@pytest.mark.parametrize("replay", [TTIReplay(), OnPolicy()])
def test_no_replay_admits_an_episode_that_infrastructure_ended(replay: Replay):
    assert not replay.admits(episode(reward=1.0, stop=StopReason.INFRA_FAILURE))
    assert replay.admits(episode(reward=1.0, stop=StopReason.TURNS))


def test_weights_are_those_of_the_hand_computed_vector():
    kept = [episode(source=s) for s in "AAAB"]
    assert TTIReplay().weights(kept) == pytest.approx([0.4 / 3, 0.55 / 3, 0.7 / 3, 0.45])
    assert TTIReplay(mix=1.0).weights(kept) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert TTIReplay(mix=0.0).weights(kept) == pytest.approx([1 / 6, 1 / 6, 1 / 6, 0.5])
    assert TTIReplay(mix=0.0, balance="difficulty").weights(kept) == pytest.approx([0.25] * 4)


def test_up_to_keep_trajectories_are_all_drawn_oldest_first():
    kept = [episode(i) for i in range(5)]
    assert TTIReplay(keep=5).draw(kept, 1, random.Random(0)) == kept
    assert TTIReplay().draw([], 0, random.Random(0)) == []


def test_a_draw_is_without_replacement_in_order_of_time_and_repeatable():
    kept = [episode(i, source="AB"[i % 2]) for i in range(100)]
    drawn = [t.ordinal for t in TTIReplay(keep=30).draw(kept, 10, random.Random(3))]
    assert len(set(drawn)) == 30
    assert drawn == sorted(drawn)
    assert drawn == [t.ordinal for t in TTIReplay(keep=30).draw(kept, 10, random.Random(3))]
    assert drawn != [t.ordinal for t in TTIReplay(keep=30).draw(kept, 10, random.Random(4))]


def test_draws_follow_the_weights():
    kept = [episode(i, source=s) for i, s in enumerate("AAAB")]
    rng, n = random.Random(0), 6000
    pairs = Counter(tuple(t.ordinal for t in TTIReplay(keep=2).draw(kept, 0, rng)) for _ in range(n))
    p = TTIReplay().weights(kept)
    for i in range(4):
        for j in range(i + 1, 4):  # either first, then the other out of what remains
            expected = p[i] * p[j] / (1 - p[i]) + p[j] * p[i] / (1 - p[j])
            assert pairs[i, j] / n == pytest.approx(expected, abs=0.025)


def test_top_p_keeps_the_shortest_successes_of_each_task():
    kept = [of_length(n, "a") for n in (4, 1, 3, 2, 5)] + [of_length(9, "b")]
    lengths = [t.length for t in TTIReplay(top_p=0.5).draw(kept, 0, random.Random(0))]
    assert lengths == [1, 3, 2, 9]
    assert len(TTIReplay(top_p=1.0).draw(kept, 0, random.Random(0))) == 6


def test_on_policy_draws_what_is_fresh_and_nothing_when_nothing_is():
    kept = [episode(i) for i in range(5)]
    assert [t.ordinal for t in OnPolicy().draw(kept, 2, random.Random(0))] == [3, 4]
    assert OnPolicy().draw(kept, 0, random.Random(0)) == []


def test_importing_the_family_is_enough_to_build_its_members():
    assert build(Replay, TTIReplay(keep=3).as_data()) == TTIReplay(keep=3)

"""TTI: filtered behaviour cloning, and a replay that prefers new successes and rare classes."""

import random
from collections import Counter

import numpy as np
import pytest
from estimators import ascent_of
from helpers import Collected, make_task, make_trajectory, make_turn

from longstride.core.budget import StopReason
from longstride.core.component import build
from longstride.core.trajectory import EpisodeRecord, Turn
from longstride.methods import Constant, Reinforce, Replay, Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR
from longstride.methods.cloning import FilteredBC
from longstride.papers.tti.method import TTIReplay


def acted(ids: list[int], action: str | None = "click [1]", changed: bool = True) -> Turn:
    return make_turn(ids, [1, 2, 3], action=action, changed=changed)


def record(ordinal: int = 0, source: str = "web/shop", reward: float = 1.0, answer: str = "red") -> EpisodeRecord:
    return make_trajectory(reward=reward, ordinal=ordinal, answer=answer, task=make_task(source=source)).record()


def drawn(replay: TTIReplay, kept: list[EpisodeRecord], rng: random.Random) -> list[EpisodeRecord]:
    return replay.draw(kept, 0, rng, Collected())


def test_all_tokens_weigh_the_same_and_together_as_much_as_there_are_turns():
    samples = FilteredBC()([make_trajectory([acted([5, 6, 7, 8]), acted([9]), acted([4])], reward=1.0)])
    assert [s.advantages for s in samples] == [[0.5] * 4, [0.5], [0.5]]
    assert FilteredBC()([]) == []


@pytest.mark.parametrize(("weight", "moves"), [("equal", False), ("by_length", True)])
def test_a_policy_that_clones_itself_keeps_the_odds_of_a_long_and_a_short_action_only_with_equal_weights(weight, moves):
    """Ids 0 and 1 begin a long and a short action, with odds of 1 to 3; what follows them is certain."""
    logits = np.full((5, 5), -30.0)
    logits[[0, 1, 2, 3], [2, 4, 3, 4]] = 30.0
    logits[4, :2] = np.log([0.25, 0.75])  # id 4 ends an action, and stands before the first id of the next
    turns = [make_turn([0, 2, 3, 4], [4], action="long")]
    turns += [make_turn([1, 4], [4], action="short") for _ in range(3)]
    samples = FilteredBC(weight=weight)([make_trajectory(turns, reward=1.0)])
    ascent = ascent_of(logits, samples, Reinforce(aggregation=Constant()))[4]
    assert ascent[1] - ascent[0] > 0.01 if moves else abs(ascent[1] - ascent[0]) < 1e-6


def test_as_released_the_tokens_of_a_turn_weigh_one_together():
    one = make_trajectory([acted([5, 6, 7, 8]), acted([9])], reward=1.0)
    samples = FilteredBC(weight="by_length")([one, make_trajectory([acted([4, 4])], reward=1.0)])
    assert [s.advantages for s in samples] == [[0.25] * 4, [1.0], [0.5, 0.5]]
    assert samples[0] == Sample([1, 2, 3], [5, 6, 7, 8], {ADVANTAGES: [0.25] * 4, BEHAVIOUR: [-1.0] * 4})
    assert [s.turn for s in samples] == [0, 1, 0]


def test_text_that_could_not_be_parsed_and_turns_without_tokens_are_not_imitated():
    turns = [acted([5], action=None), acted([]), acted([6])]
    assert [s.sampled_ids for s in FilteredBC()([make_trajectory(turns, reward=1.0)])] == [[6]]


def test_the_repetition_filter_leaves_out_turns_without_effect_but_never_the_last():
    turns = [acted([5], changed=False), acted([6]), acted([7], "answer red", changed=False)]
    episode = make_trajectory(turns, reward=1.0)
    assert [s.sampled_ids for s in FilteredBC(drop_unchanged=True)([episode])] == [[6], [7]]
    assert [s.sampled_ids for s in FilteredBC()([episode])] == [[5], [6], [7]]


def test_only_successes_are_imitated_whatever_the_replay_let_through():
    partial = make_trajectory([acted([5])], reward=0.5, success=False)
    failed = make_trajectory([acted([5])], reward=1.0, stop=StopReason.INFRA_FAILURE)
    assert FilteredBC()([make_trajectory([acted([5])]), partial, failed]) == []


def test_the_replay_admits_successes_that_do_not_end_with_not_available():
    assert [TTIReplay().admits(r) for r in (record(reward=0.0), record(answer="N/A"), record())] == [False, False, True]


def test_replay_weights_are_those_of_the_hand_computed_vector():
    kept = [record(source=s) for s in "AAAB"]
    assert TTIReplay().weights(kept) == pytest.approx([0.4 / 3, 0.55 / 3, 0.7 / 3, 0.45])
    assert TTIReplay(mix=1.0).weights(kept) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert TTIReplay(mix=0.0).weights(kept) == pytest.approx([1 / 6, 1 / 6, 1 / 6, 0.5])
    assert TTIReplay(mix=0.0, balance="difficulty").weights(kept) == pytest.approx([0.25] * 4)


def test_up_to_keep_trajectories_are_all_drawn_oldest_first():
    kept = [record(n) for n in range(5)]
    assert drawn(TTIReplay(keep=5), kept, random.Random(0)) == kept
    assert drawn(TTIReplay(), [], random.Random(0)) == []


def test_a_draw_is_without_replacement_in_order_of_time_and_repeatable():
    kept = [record(n, source="AB"[n % 2]) for n in range(100)]
    ordinals = lambda seed: [r.ordinal for r in drawn(TTIReplay(keep=30), kept, random.Random(seed))]  # noqa: E731
    assert len(set(ordinals(3))) == 30
    assert ordinals(3) == sorted(ordinals(3)) != ordinals(4)


def test_draws_follow_the_weights():
    kept = [record(n, source=s) for n, s in enumerate("AAAB")]
    rng, n = random.Random(0), 6000
    pairs = Counter(tuple(r.ordinal for r in drawn(TTIReplay(keep=2), kept, rng)) for _ in range(n))
    p = TTIReplay().weights(kept)
    for i in range(4):
        for j in range(i + 1, 4):  # either first, then the other out of what remains
            expected = p[i] * p[j] / (1 - p[i]) + p[j] * p[i] / (1 - p[j])
            assert pairs[i, j] / n == pytest.approx(expected, abs=0.025)


def test_top_p_keeps_the_shortest_successes_of_each_task():
    lengths = [(4, "a"), (1, "a"), (3, "a"), (2, "a"), (5, "a"), (9, "b")]
    kept = [make_trajectory(turns, 1.0, task=make_task(name)).record() for turns, name in lengths]
    assert [r.length for r in drawn(TTIReplay(top_p=0.5), kept, random.Random(0))] == [1, 3, 2, 9]
    assert len(drawn(TTIReplay(top_p=1.0), kept, random.Random(0))) == 6


def test_the_replay_is_built_again_from_its_data():
    assert build(Replay, TTIReplay(keep=3).as_data()) == TTIReplay(keep=3)

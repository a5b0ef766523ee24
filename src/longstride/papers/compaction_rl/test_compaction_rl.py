"""CompactionRL: when a summary is asked for, what stands after it, and how segments are credited."""

import random
from typing import Any

import pytest
from helpers import make_trajectory, make_turn
from line_world import CHAT, END, Line, ids, language, plan, play, walk
from one_page import OnePageTasks

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.dial import DialCodes
from longstride.methods.advantages import GAE
from longstride.papers.compaction_rl.method import (
    SUMMARY,
    AcrossSegments,
    Compacted,
    Compacting,
    CompactingEnv,
    segments,
)
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer
from longstride.rollout.context import FullHistory, Past
from longstride.starts.demonstrators import run_now

CODES = DialCodes(distances=(9, 9), codes=3)
SOURCE = Compacting(tasks=CODES, turns=3, request="sum up")


def played(source: Compacting, turns: int = 30) -> Trajectory:
    task = source.sample(random.Random(0), 1)[0]
    said = source.demonstrate(task)
    return Pool(ScriptedPlayer(lambda e: said[e.turns]), source.env, TaskReward()).run(
        [Plan(task, 0, 0, Budget(turns=turns))]
    )[0]


def test_a_summary_is_a_turn_after_so_many_others_and_what_came_of_the_action_is_seen_then() -> None:
    t, plain = played(SOURCE), played(SOURCE.replace(turns=99))
    assert t.success and [k for k, turn in enumerate(t.turns) if turn.action == SUMMARY] == [3, 7]
    assert [turn.observation for turn in t.turns if turn.action == SUMMARY] == ["sum up"] * 2
    others = [turn for turn in t.turns if turn.action != SUMMARY]
    assert [(u.observation, u.text) for u in others] == [(u.observation, u.text) for u in plain.turns]
    assert t.length == plain.length + 2, "summaries are counted"


def test_nothing_is_summed_up_at_the_end() -> None:
    assert SUMMARY not in [turn.action for turn in played(SOURCE.replace(turns=9)).turns]


def test_a_summary_says_what_the_turns_before_it_saw() -> None:
    t = played(SOURCE)
    codes = t.task.evaluator["reference"].split()
    for k, turn in enumerate(t.turns):
        if turn.action == SUMMARY:
            seen = "\n".join(str(u.observation) for u in t.turns[:k])
            assert turn.text == " ".join(["code", *(c for c in codes if f"code {c}\n" in seen)])


def line(**when: Any) -> CompactingEnv:
    return CompactingEnv(Compacting(tasks=OnePageTasks(), request="over", **when), Line())


def test_a_summary_is_asked_for_where_a_turn_read_and_said_too_much_and_no_world_takes_it() -> None:
    env = line(tokens=10)

    async def seen() -> list[str]:
        first = await env.reset(walk(), 0)
        found = [first.text]
        for text, read in [("go north", 7), ("go north", 8), ("go south", 9), ("go north", 4)]:
            env.sampled([1, 2], [], read, "stop")
            found.append((await env.step(text)).observation.text)
        return found

    assert run_now(seen()) == ["at 0", "at 1", "over", "at 2", "at 3"], "`go south` was a summary"


def test_in_an_episode_a_summary_stands_in_the_ids_that_were_sampled_and_nothing_else_of_what_was_before() -> None:
    t = play(language(context=Compacted(keep=0)), plan(3, turns=12, task=walk()), env=lambda: line(turns=3))[0]
    (asked, *_) = [k for k, turn in enumerate(t.turns) if turn.action == SUMMARY]
    summary, after = t.turns[asked], t.turns[asked + 1]
    whole = Past("g", ["over", after.observation], [summary.ids])
    assert asked == 3 and after.prompt_ids == FullHistory().render(CHAT, whole)


SEEN = ["x 0", "x 1", "x", "x 3", "x 4", "x", "x 6"]
SAID = [[*ids(f"go {k}"), END] for k in range(6)]
DID = ["go", "go", SUMMARY, "go", "go", SUMMARY]


@pytest.mark.parametrize(
    ("upto", "keep", "turns"),
    [
        (2, 1, [0, 1]),  # asked for the first one: all is there
        (3, 0, [2]),
        (3, 1, [2, 1]),
        (3, 9, [2, 0, 1]),
        (5, 1, [2, 1, 3, 4]),  # asked for the second one
        (6, 1, [5, 4]),
        (6, 9, [5, 3, 4]),  # no older than the summary before
    ],
)
def test_after_a_summary_stand_it_the_last_turns_before_it_and_what_came_since(
    upto: int, keep: int, turns: list[int]
) -> None:
    prompt = Compacted(keep=keep).render(CHAT, Past("g", SEEN[: upto + 1], SAID[:upto], actions=DID[:upto]))
    seen = [*(SEEN[k] for k in turns), SEEN[upto]]
    assert prompt == FullHistory().render(CHAT, Past("g", seen, [SAID[k] for k in turns]))


def turn(tokens: int, value: float, summary: bool = False) -> Turn:
    made = make_turn(range(tokens), [0], action=SUMMARY if summary else "go")
    made.estimates["value"] = value
    return made


def test_segments_end_with_summaries_and_all_but_the_last_as_if_the_episode_had_ended_there() -> None:
    t = make_trajectory([turn(1, 0), turn(1, 0, True), turn(1, 0)], 1.0, stop=StopReason.TURNS)
    first, last = segments(t)
    assert (first.turns, first.stop, first.reward) == (t.turns[:2], StopReason.ANSWERED, 1.0)
    assert (last.turns, last.stop, last.reward) == (t.turns[2:], StopReason.TURNS, 1.0)
    (whole,) = segments(make_trajectory([turn(1, 0), turn(1, 0, True)], 1.0))
    assert whole.length == 2, "an episode that its limit cut at a summary has no segment after it"


def test_a_segment_earns_the_episode_s_reward_less_for_what_comes_after_it() -> None:
    t = make_trajectory([turn(1, 0.5), turn(1, 0.25, True), turn(2, 0.75)], 1.0)
    # two tokens a segment: lam = 1 - 1 / (1.5 * 2) = 2/3. The last: .25 for its last token, .25 * 2/3 before it. The
    # first: 1 - .25 for the summary, .25 - .5 + 2/3 * .75 before it, times (2/3)^2 for the two tokens to come
    lam = 2 / 3
    (found,) = AcrossSegments().advantages([t])
    assert found[2] == pytest.approx([0.25 * lam, 0.25])
    assert found[1] == pytest.approx([0.75 * lam**2])
    assert found[0] == pytest.approx([(-0.25 + 0.75 * lam) * lam**2])


def test_a_critic_learns_what_a_segment_earns_from_each_turn_on() -> None:
    t = make_trajectory([turn(2, 0.0), turn(1, 0.0, True), turn(3, 0.0), turn(2, 0.0)], 1.0)
    t.turns[0].reward, t.turns[2].reward = 0.25, 0.5
    failed = make_trajectory([turn(1, 0.0)], stop=StopReason.INFRA_FAILURE)
    assert AcrossSegments().targets([t, failed]) == [pytest.approx([1.0, 0.75, 1.0, 0.5]), []]
    # the first token of a turn has all of its tokens to go
    halved = [0.25 / 2 + 0.75 / 4, 0.75, 0.5 / 4 + 0.5 / 16, 0.5 / 2]
    assert AcrossSegments(discount=0.5).targets([t]) == [pytest.approx(halved)]


def test_an_episode_without_a_summary_has_the_estimates_of_tokens() -> None:
    t = make_trajectory([turn(3, 0.5), turn(2, 0.25)], 1.0)
    plain = GAE(over="tokens", lam=1 - 1 / (2 * 5), values="critic").advantages([t])
    assert AcrossSegments(spread=2.0).advantages([t]) == [[pytest.approx(of) for of in plain[0]]]


def test_summaries_that_are_not_trained_change_nothing_for_other_turns() -> None:
    t = make_trajectory([turn(1, 0.5), turn(1, 0.25, True), turn(2, 0.75)], 1.0)
    (trained,), (left,) = AcrossSegments().advantages([t]), AcrossSegments(summaries=False).advantages([t])
    assert left[1] is None and [left[0], left[2]] == [trained[0], trained[2]]


def test_summaries_are_demonstrated_where_it_is_known_what_to_note() -> None:
    with pytest.raises(ConfigError, match="summaries are demonstrated where `turns` alone decides"):
        Compacting(tasks=OnePageTasks(), turns=2).demonstrate(OnePageTasks().held_out(1)[0])
    with pytest.raises(ConfigError, match="tokens=9: set turns"):
        Compacting(tasks=CODES, turns=2, tokens=9).demonstrate(CODES.held_out(1)[0])


def test_tasks_that_never_ask_for_a_summary_are_refused() -> None:
    with pytest.raises(ValueError, match="say when a summary is asked for"):
        Compacting(tasks=CODES)

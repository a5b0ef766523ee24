"""Puzzles in rounds: attempts whose rewards add up to the last score, and thought of which a summary is left."""

import random
from typing import Any

import pytest
from pydantic import ValidationError

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import TaskSource
from longstride.envs.puzzles import Countdown, Iterated, Mastermind, ModularChain, Puzzles, Sudoku
from longstride.envs.puzzles.countdown import Numbers, results
from longstride.envs.puzzles.iterated import done, tried
from longstride.envs.puzzles.modular import Chain
from longstride.models.chat import ChatFormat
from longstride.models.tiny import build_tokenizer
from longstride.rewards import Attempts, TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer
from longstride.rollout.context import ContextPolicy, LatestObservation, Past

CHAIN = Chain(first=3, operations=(("+", 4), ("*", 2), ("-", 5)), modulus=7)
NUMBERS = Numbers(numbers=(3, 4, 2), target=14)
RIGHT, WRONG = "Action: answer ( 3 + 4 ) * 2", "Action: answer 3 + 4"
PUZZLES = Puzzles()


def task_of(puzzle: Chain | Numbers, source: str, **more: Any) -> Task:
    expected = {"type": "state", "expected": {"verdict": "solved"}}
    return Task(
        id="t", source=f"puzzles/{source}", goal=puzzle.goal, start=more.pop("start", "start"), evaluator=expected,
        meta=puzzle.model_dump(), **more,
    )  # fmt: skip


COUNTDOWN, CHAINED = task_of(NUMBERS, "countdown"), task_of(CHAIN, "modular_chain")


def play(source: TaskSource, task: Task, *texts: str, turns: int = 0) -> Trajectory:
    plan = Plan(task, 0, 0, Budget(turns=turns or len(texts)))
    return Pool(ScriptedPlayer(lambda e: texts[e.turns]), source.env, TaskReward()).run([plan])[0]


# attempts


@pytest.mark.parametrize(
    ("said", "rewards", "reward"),
    [
        ((RIGHT, RIGHT), [1, -1], 1),
        ((RIGHT, WRONG), [1, -1], 0),
        ((WRONG, RIGHT), [0, 0], 1),
        ((WRONG, WRONG), [0, 0], 0),
        (("hm", RIGHT), [0, 0], 1),
        ((RIGHT, "hm"), [1, -1], 0),
    ],
)
def test_an_episode_earns_the_score_of_its_last_attempt_and_a_turn_what_it_changed(said, rewards, reward) -> None:
    t = play(Attempts(), COUNTDOWN, *said, turns=5)
    assert (t.length, [turn.reward for turn in t.turns], t.reward, t.success) == (2, rewards, reward, reward > 0)
    assert t.stop.terminated


def test_another_attempt_is_asked_for_in_the_same_words_whatever_the_verdict() -> None:
    assert [play(Attempts(), COUNTDOWN, *said).turns[1].observation for said in ((RIGHT, RIGHT), (WRONG, RIGHT))] == [
        "check again", "check again",
    ]  # fmt: skip
    assert (
        play(Attempts(), COUNTDOWN, "hm", RIGHT).turns[1].observation
        == "error: unknown action 'hm'; use one of answer\ncheck again"
    )


def test_an_episode_that_is_cut_has_the_score_so_far() -> None:
    assert [play(Attempts(), COUNTDOWN, said, turns=1).reward for said in (RIGHT, WRONG)] == [1, 0]
    t = play(Attempts(attempts=3), COUNTDOWN, RIGHT, WRONG, RIGHT)
    assert ([turn.reward for turn in t.turns], t.reward) == ([1, -1, 0], 1)


def test_an_attempt_at_a_puzzle_of_several_turns_begins_anew() -> None:
    source = Sudoku(multi_turn=True)
    task = source.sample(random.Random(0), 1)[0]
    solution = source.demonstrate(task)
    t = play(Attempts(tasks=Puzzles(sources=(source,))), task, *solution, *solution)
    assert (t.length, t.reward, t.turns[len(solution) - 1].reward) == (2 * len(solution), 1, 1)
    assert t.turns[len(solution)].observation == f"{t.turns[0].observation}\ncheck again"


# rounds


@pytest.mark.parametrize(
    ("before", "said", "after"),
    [
        ("", "Thought: 3 + 4 ≡ 0 Action: answer 0", "now 0 ; * 2 ; - 5"),
        ("", "Thought: 3 + 4 ≡ 0 ; 0 * 2 = 0 ; Action: answer 0", "now 0 ; - 5"),
        ("now 5 ; * 2 ; - 5", "Thought: 5 * 2 ≡ 3 Action: answer 3", "now 3 ; - 5"),
        ("now 3 ; - 5", "Thought: 3 - 5 ≡ 5 ; 5 - 5 ≡ 0 Action: answer 5", "now 0"),  # there are three operations
        ("now 5 ; * 2 ; - 5", "Action: answer 5", "now 5 ; * 2 ; - 5"),
        ("now 5 ; * 2 ; - 5", "Thought: ; 5 * = Action: answer 5", "now 5 ; * 2 ; - 5"),
        ("", "nothing", ""),
    ],
)
def test_a_chain_is_summarised_by_place_and_value(before: str, said: str, after: str) -> None:
    assert done(CHAIN, before, said) == after


@pytest.mark.parametrize(
    ("before", "said", "after"),
    [
        ("", "Thought: 3 + 4 = 7 ; 7 2 want 14 ; 7 + 2 = 9 no Action: answer ( 3 + 4 ) + 2", "tried 4 + 3"),
        ("tried 4 + 3", "Thought: 4 * 2 = 8 ; 8 + 3 = 11 no ; again ; 4 + 3 = 7 no Action: answer 8",
         "tried 4 + 3 ; 4 * 2"),
        ("tried 4 + 3", "Thought: 4 * 2 = 8 no ; again ; 3 - 2 = 1 ; 4 * 1 = 14 yes Action: answer 4 * ( 3 - 2 )",
         "found 4 * ( 3 - 2 )"),
        ("found 4 * 3", "Action: answer 4 * 3", "found 4 * 3"),
        ("tried 4 + 3", "Thought: 4 * 1 = 14 yes Action: answer 4 * 1", "tried 4 + 3"),  # there is no 1
        ("", "Thought: 4 + 4 = 8 no Action: answer 4 + 4", ""),  # there is one 4
        ("", "Thought: 4 + 3 = 7 ; 7 + 2 = 9 Action: answer 9", ""),  # an attempt without an end
        ("tried 4 + 3", "Thought: again yes", "tried 4 + 3"),
    ],
)  # fmt: skip
def test_a_countdown_is_summarised_by_failed_first_moves_or_what_was_found(before: str, said: str, after: str) -> None:
    assert tried(NUMBERS, before, said) == after


def test_the_last_answer_counts_and_none_ends_the_episode() -> None:
    for said, reward in (((WRONG, RIGHT), 1), ((RIGHT, WRONG), 0), ((RIGHT, "hm"), 1), (("hm", "hm"), 0)):
        t = play(Iterated(), COUNTDOWN, *said)
        assert (t.length, t.stop, t.reward) == (2, StopReason.TURNS, reward)


def test_a_round_shows_the_summary_and_a_task_may_begin_with_one() -> None:
    steps = (
        "Thought: 3 + 4 ≡ 0 Action: answer 0",
        "Thought: 0 * 2 ≡ 0 Action: answer 0",
        "Thought: 0 - 5 ≡ 2 Action: answer 2",
    )
    whole = play(Iterated(), CHAINED, *steps)
    assert [turn.observation for turn in whole.turns] == ["", "now 0 ; * 2 ; - 5", "now 0 ; - 5"] and whole.success
    begun = play(Iterated(), CHAINED.model_copy(update={"start": "now 0 ; - 5"}), steps[2])
    assert [turn.observation for turn in begun.turns] == ["now 0 ; - 5"] and begun.success


def test_what_cannot_be_summarised_is_refused() -> None:
    with pytest.raises(ValidationError, match="there is no summary of mastermind"):
        Iterated(puzzles=Puzzles(sources=(Mastermind(),)))


@pytest.mark.parametrize("source", [Attempts(attempts=3), Iterated()])
def test_tasks_are_those_of_the_puzzles_and_the_source_is_rebuilt_from_its_data(source: Attempts | Iterated) -> None:
    assert source.sample(random.Random(3), 5) == PUZZLES.sample(random.Random(3), 5)
    assert source.held_out(8) == PUZZLES.held_out(8)
    assert build(TaskSource, source.as_data()) == source


def test_the_newest_observation_is_all_that_stays() -> None:
    chat = ChatFormat(build_tokenizer(["make 14 from 3 4 2", "tried 4 + 3", "done"]))
    once = LatestObservation().render(chat, Past(NUMBERS.goal, ["tried 4 + 3"], []))
    long = Past(NUMBERS.goal, ["", "tried 3 + 4", "tried 4 + 3"], [[5, 6], [7]])
    assert LatestObservation().render(chat, long) == once
    assert once == chat.head(NUMBERS.goal) + chat.observation("tried 4 + 3", first=True)
    assert build(ContextPolicy, {"type": "latest_observation"}) == LatestObservation()


# countdown with small values


def test_values_on_the_way_stay_below_the_bound() -> None:
    assert [results(a, b, 30) for a, b in ((7, 5), (5, 7), (6, 3), (4, 4))] == [
        [("+", 12), ("-", 2)], [], [("+", 9), ("*", 18), ("-", 3), ("/", 2)], [("+", 8), ("*", 16), ("/", 1)],
    ]  # fmt: skip
    for task in Countdown(largest=10, most=30).sample(random.Random(0), 60):
        puzzle = Numbers.of(task)
        assert all(int(step.rpartition("= ")[2]) <= 30 for step in puzzle.solution()[0]) and puzzle.target <= 30
    assert ModularChain().source == "puzzles/modular_chain"

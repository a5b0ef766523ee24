"""Puzzle thoughts: the answer is there after any word, what was done by force is not imitated, and a second look finds
what was wrong."""

import random
from fractions import Fraction
from itertools import islice

import pytest

from longstride.core.component import build
from longstride.core.task import Task
from longstride.envs.puzzles import Puzzles
from longstride.envs.puzzles.countdown import Numbers, value_of
from longstride.envs.puzzles.modular import Chain
from longstride.envs.text import said
from longstride.models.load import SHIPPED, load_policy
from longstride.models.tiny import words_of
from longstride.papers.grpo.recipe import RECIPE
from longstride.run.evaluation import evaluate_policy
from longstride.starts.demonstrators import Demonstration, Demonstrators
from longstride.starts.puzzle_thoughts import CutTrace, PuzzleThoughts, look_again
from longstride.strategies.think_on import ThinkOn

CHAIN = Chain(first=3, operations=(("+", 4), ("*", 2)), modulus=7)
TWICE = "Thought: 3 + 4 ≡ 0 ; 0 * 2 ≡ 0 ; again ; 3 + 4 ≡ 0 ; 0 * 2 ≡ 0 yes"
FORCED = "Thought: 3 + 4 ≡ 0 Thought: 0 * 2 ≡ 0 Thought: 3 + 4 ≡ 0 ; 0 * 2 ≡ 0 yes"


def task_of(puzzle: Chain | Numbers) -> Task:
    """A task of a training set that is this puzzle."""
    source = "puzzles/modular_chain" if isinstance(puzzle, Chain) else "puzzles/countdown"
    return Task(id="t", source=source, goal=puzzle.goal, start="", meta=puzzle.model_dump())


def thought(puzzle: Chain | Numbers, trace: CutTrace) -> tuple[str, list[float]]:
    found = Demonstration(task_of(puzzle))
    PuzzleThoughts().think(found, trace)
    (text,), (weights,) = found.texts, found.weights
    assert isinstance(weights, list) and len(weights) == len(words_of(text))
    return text, weights


def trace(room: int, patience: float = 1.0, told: float = 0.0) -> CutTrace:
    return CutTrace(random.Random(0), patience, slip=0.0, example=0.0, room=room, told=told)


@pytest.mark.parametrize(
    ("room", "written", "answer"),
    [
        (1, "Thought:", 3),
        (5, "Thought: 3 + 4 ≡", 3),
        (6, "Thought: 3 + 4 ≡ 0", 0),
        (20, "Thought: 3 + 4 ≡ 0 ; 0 * 2 ≡ 0 ; again ; 3 + 4 ≡ 0", 0),
        (27, TWICE, 0),
    ],
)
def test_a_chain_is_answered_after_any_word_by_the_value_so_far(room: int, written: str, answer: int):
    text, weights = thought(CHAIN, trace(room))
    assert text == f"{written} Action: answer {answer}"
    assert weights[-3:] == [0, 1, 1]  # the end by force is not imitated, the answer is


def test_who_is_impatient_ends_the_thought_and_that_is_imitated():
    assert thought(CHAIN, trace(99, patience=0.0)) == ("Thought: 3 + 4 ≡ 0 Action: answer 0", [1.0] * 9)


def test_who_is_made_to_go_on_goes_on_where_the_thought_ended():
    text, weights = thought(CHAIN, trace(26, told=1.0))
    assert text.startswith(FORCED)
    assert [k for k, w in enumerate(weights[:-3]) if w == 0] == [6, 12, 25]  # the words by which it goes on


def test_a_patient_one_does_not_show_that_it_goes_on_but_what_it_does_then():
    weights = thought(CHAIN, trace(30))[1]
    assert [k for k, w in enumerate(weights[:-3]) if w == 0] == [6, 12, 27]  # `;` and not `again ;`


class Slips(CutTrace):
    """Steps that have these results."""

    left: list[int]

    def result(self, right: int, others: range) -> int:
        return self.left.pop(0)


@pytest.mark.parametrize(
    ("results", "verdicts", "answer"),
    [
        ([5, 6], ["no"], 6), ([5, 5, 6], ["yes", "no"], 5), ([5, 6, 5], ["no", "yes"], 5),
        ([5, 5, 6, 6], ["yes", "no", "yes"], 6),
    ],
)  # fmt: skip
def test_of_several_passes_the_value_counts_that_came_most_often_and_of_equals_the_newest(results, verdicts, answer):
    one_step = Chain(first=1, operations=(("+", 1),), modulus=7)
    slips = Slips(random.Random(0), 1.0, 0.0, 0.0, room=6 + 9 * len(verdicts))
    slips.left = list(results)
    text, _ = thought(one_step, slips)
    assert [w for w in words_of(text) if w in ("yes", "no")] == verdicts and text.endswith(f"answer {answer}")


def test_a_second_look_ends_at_the_first_step_that_is_not_right():
    right, wrong = ["9 - 2 = 7 , 8", "8 7 want 15", "8 + 7 = 15 want 15"], ["9 - 2 = 6 , 8", "8 6 want 14"]
    assert look_again(right) == (right, True)
    assert look_again(wrong) == (["9 - 2 = 7"], False)
    assert look_again([*right[:2], "8 + 7 = 14 want 14"]) == ([*right[:2], "8 + 7 = 15"], False)


def test_a_countdown_is_answered_by_the_attempt_under_way_or_by_the_one_that_is_right():
    puzzle, found = Numbers(numbers=(4, 1, 2), target=7, most=30), set()
    for room in range(1, 100):
        text, _ = thought(puzzle, trace(room))
        answer = said(text).removeprefix("answer ")
        value = value_of(answer, puzzle.numbers)
        assert isinstance(value, Fraction)  # well-formed after any word
        found.add(right := value == puzzle.target)
        assert right or " yes" not in text
    assert found == {True, False}


def test_demonstrations_are_of_training_tasks_are_cut_as_often_as_asked_and_are_a_function_of_their_number():
    thoughts = PuzzleThoughts(patient=0.0, patience=1.0, told=0.0, cut=1.0)
    demos = list(islice(thoughts.demonstrations(3), 200))
    assert next(thoughts.demonstrations(3, first=41)) == demos[41]
    assert {d.task.split for d in demos} == {"train"} and len({d.task.source for d in demos}) == 2
    lengths = [words_of(d.texts[0]).index("Action:") for d in demos]
    assert min(lengths) >= 1 and max(lengths) <= 128
    # the logarithm is uniform: a quarter up to 3, half of them up to 11
    assert 30 < sum(n <= 3 for n in lengths) < 70 and 80 < sum(n <= 11 for n in lengths) < 120


def test_it_is_a_member_of_its_family_and_is_rebuilt_from_its_data():
    assert build(Demonstrators, PuzzleThoughts(cut=0.25).as_data()) == PuzzleThoughts(cut=0.25)


def test_the_shipped_base_answers_after_any_thought_and_better_after_longer_ones():
    assert sum(p.stat().st_size for p in SHIPPED["base-thoughts"].iterdir()) < 1.5e6
    policy, tasks = load_policy("base-thoughts"), Puzzles().held_out(60)
    short, long = (evaluate_policy(policy, RECIPE, tasks, ThinkOn(most=n)) for n in (8, 48))
    assert short.summary["invalid"] == 0 and long.summary["success"] > short.summary["success"] + 0.2
    mark = policy.chat.encode("Action:")[0]
    for result, n in ((short, 8), (long, 48)):
        (turns,) = zip(*(t.turns for t in result.trajectories), strict=True)
        assert {turn.ids.index(mark) for turn in turns} <= {n - 1, n}
        assert all(mark in turn.given_ids or turn.ids.index(mark) == n - 1 for turn in turns)

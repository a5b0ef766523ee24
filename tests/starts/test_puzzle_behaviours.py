"""Traces with chosen behaviours: each shows where it is asked for and nowhere else, and arithmetic is right."""

import random
import re
from itertools import islice
from typing import Any

import pytest

from longstride.envs.puzzles import Countdown
from longstride.envs.puzzles.countdown import Numbers, value_of
from longstride.starts.demonstrators import Demonstration
from longstride.starts.puzzle_behaviours import PuzzleBehaviours, undone

STEP = re.compile(r"(\d+ [-+*/] \d+) = (\d+)")
MARKS = {
    "verification": r"want \d+ (yes|no)",
    "backtracking": "; again ;",
    "subgoals": r"; \d+ \d+ want \d+ ;",
    "backward_chaining": r"want \d+ [-+*/] \d+ = ",
}


def some(n: int = 60, **settings: Any) -> list[Demonstration]:
    return list(islice(PuzzleBehaviours(**settings).demonstrations(3), n))


def answer(shown: Demonstration) -> str:
    return shown.texts[0].rpartition("Action: answer ")[2]


def is_right(shown: Demonstration) -> bool:
    return Numbers.of(shown.task).check(answer(shown)) == "solved"


@pytest.mark.parametrize("behaviour", MARKS)
def test_a_behaviour_shows_where_it_is_asked_for_and_nowhere_else(behaviour: Any) -> None:
    others = tuple(b for b in MARKS if b != behaviour)
    for shown_ones, shows in (((behaviour,), True), (others, False)):
        texts = [shown.texts[0] for shown in some(answers="wrong", behaviours=shown_ones)]
        assert any(re.search(MARKS[behaviour], text) for text in texts) is shows
    assert not any(re.search("|".join(MARKS.values()), shown.texts[0]) for shown in some(behaviours=()))


@pytest.mark.parametrize("answers", ["right", "wrong"])
def test_all_answers_are_right_or_all_are_wrong_and_all_steps_are_right(answers: Any) -> None:
    for shown in some(answers=answers):
        assert is_right(shown) is (answers == "right") and shown.task.split == "train"
        said = shown.texts[0]
        steps = STEP.findall(said)
        assert steps
        for expression, result in steps:
            a, _, b = expression.split()
            assert value_of(expression, (int(a), int(b))) == int(result)
        assert said.count(" yes") == (answers == "right") and said.count(" again ") == said.count(" no") - (
            answers == "wrong"
        )


def test_filler_is_as_long_as_the_thought_it_stands_for_and_comes_to_the_same_answer() -> None:
    for spoken, filler, empty in zip(some(), some(thought="filler"), some(thought="empty"), strict=True):
        assert spoken.task == filler.task and len(spoken.texts[0].split()) == len(filler.texts[0].split())
        assert {*filler.texts[0].partition(" Action:")[0].split()} == {"Thought:", ";"}
        assert empty.texts[0] == f"Action: answer {answer(spoken)}" == f"Action: answer {answer(filler)}"


def test_what_is_undone_makes_the_target_again() -> None:
    puzzle = Numbers(numbers=(4, 3), target=12, most=30)
    assert undone(12, 4, puzzle) == [("+", 8), ("-", 16), ("*", 3)]  # 48 / 4 is above 30
    assert undone(5, 5, puzzle) == [("-", 10), ("*", 1), ("/", 25)]


def test_demonstrations_are_a_function_of_their_number_and_of_any_countdown() -> None:
    traces = PuzzleBehaviours(tasks=Countdown(numbers=(2, 3, 4), largest=10, most=30), attempts=2)
    found = list(islice(traces.demonstrations(0), 40))
    assert next(traces.demonstrations(0, first=17)) == found[17]
    assert {len(Numbers.of(shown.task).numbers) for shown in found} == {2, 3, 4}
    assert max(shown.texts[0].count("again") for shown in found) == 1


def test_where_no_operation_leads_back_from_the_target_an_attempt_goes_forward_alone() -> None:
    puzzle = Numbers(numbers=(7, 8, 7), target=6, most=10)  # 6 - 7 is below 1, 6 + 7 and 6 * 7 are above 10
    assert not any(undone(6, n, puzzle) for n in puzzle.numbers)
    lines, _, _ = PuzzleBehaviours(behaviours=("backward_chaining",)).solve(puzzle, random.Random(0))
    assert len(lines) == 2 and not any("want" in line for line in lines)
    tight = PuzzleBehaviours(tasks=Countdown(numbers=(3, 3, 3), largest=10, most=10))
    assert all(is_right(shown) for shown in islice(tight.demonstrations(3), 60))

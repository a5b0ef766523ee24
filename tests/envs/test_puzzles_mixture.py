"""The mixture of puzzles: shares of its sources, and which of them plays a task."""

import random

import pytest

from longstride.core.component import build
from longstride.core.errors import EnvFailure, TaskError
from longstride.envs.base import TaskSource
from longstride.envs.puzzles import Countdown, ModularChain, Puzzles, PuzzleSource, Sudoku

SOURCES: tuple[PuzzleSource, ...] = (ModularChain(), Countdown(), Sudoku())
MIXTURE = Puzzles(sources=SOURCES)


def test_held_out_tasks_are_the_first_of_a_fixed_stream_with_equal_shares():
    tasks = MIXTURE.held_out(18)
    assert MIXTURE.held_out(7) == tasks[:7]
    assert {t.split for t in tasks} == {"test"}
    for source in MIXTURE.sources:
        assert [t for t in tasks if t.source == source.source] == source.held_out(6)


async def test_a_task_is_played_by_its_own_kind_and_a_foreign_one_is_refused():
    for task in MIXTURE.sample(random.Random(0), 12):
        source = next(s for s in MIXTURE.sources if s.source == task.source)
        env = MIXTURE.env()
        await env.reset(task, 0)
        await env.step(source.demonstrate(task)[0])
        assert await env.final_state() == {"verdict": "solved"}
    with pytest.raises(EnvFailure, match="is of 'puzzles/sudoku'; expected was one of puzzles/modular_chain"):
        await Puzzles(sources=(ModularChain(),)).env().reset(Sudoku().held_out(1)[0], 0)
    for ask in (Puzzles().demonstrate, Puzzles().hint, lambda task: Puzzles().review(task, "answer 3")):
        with pytest.raises(TaskError, match="is of 'puzzles/sudoku'; expected was one of puzzles/modular_chain"):
            ask(Sudoku().held_out(1)[0])


def test_what_helps_with_a_task_and_what_is_left_of_it_are_said_by_its_own_kind():
    seen = set()
    for task in MIXTURE.sample(random.Random(0), 30):
        source = next(s for s in SOURCES if s.source == task.source)
        begun = f"Thought: {source.hint(task)} Action: answer 0"
        assert MIXTURE.hint(task) == source.hint(task) and MIXTURE.subgoal(task, begun) == source.subgoal(task, begun)
        seen.add((task.source, bool(MIXTURE.hint(task)), MIXTURE.subgoal(task, begun) is not None))
    assert len({source for source, helped, _ in seen if helped}) == 3 and any(rest for *_, rest in seen)


def test_it_is_built_again_from_its_data():
    assert build(TaskSource, Puzzles().as_data()) == Puzzles()

"""The task source of programs: functions to write, to test and to mend.

What always holds: tasks are a function of the random stream; `task.optimal` is the goal distance, a command for each
function and the end. Who makes no mistake needs no test, and who writes several functions in one command needs fewer.
"""

import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from longstride.core.errors import short
from longstride.core.foreign import UnreadableError, read_json
from longstride.core.numbers import Count
from longstride.core.processes import Isolation, Limits
from longstride.core.task import Task
from longstride.envs.distances import AtDistances
from longstride.envs.terminal.programs import CALLS, MOST_FUNCTIONS, PASSED, Functions, verdict
from longstride.envs.terminal.shell import Shell

PLACE = "/task"
Distance = Annotated[int, Field(ge=2, le=MOST_FUNCTIONS + 1)]
"""Fewest commands that solve a task where each writes one function, `done` included."""


class Coding(AtDistances):
    """Programs, drawn afresh for ever. Held-out ones are none of training's, and, where `test_distances` says so, of
    other lengths."""

    distances: tuple[Distance, Distance] = (3, 6)
    test_distances: Annotated[tuple[Distance, ...], Field(max_length=1000)] = ()
    limits: Limits = Limits(seconds=20.0, memory=512, processes=32, file_size=16, folder_size=64)
    """What a command may use, tests among them."""
    isolation: Isolation = "auto"
    """Whether commands run under bubblewrap."""
    shown: Count = 2000
    """Characters of a command's output that are shown."""
    episodes: Count = 64
    """Episodes that may be live at once; each has a folder, and a process while a command runs."""

    @property
    def at_once(self) -> int:
        return self.episodes

    def env(self) -> "CodingEnv":
        return CodingEnv(self)

    def demonstrate(self, task: Task) -> list[str]:
        """A solution without a mistake: `task.optimal` texts. Raises: TaskError for a task of another source."""
        wanted = Functions.of(task).wanted
        return [*(f"Action: sh write {name} {how} {number}" for name, how, number in wanted), "Action: done"]

    def _task(self, rng: random.Random, distance: int, split: Literal["train", "test"]) -> Task:
        program = Functions(functions=distance - 1, seed=rng.getrandbits(40), held_out=split == "test")
        name = f"coding/{distance}-{program.seed}-{split}"
        return Task(
            id=name,
            source="coding",
            split=split,
            goal=program.goal,
            start=PLACE,
            difficulty=self.difficulty(distance),
            template_id=name,
            evaluator={"type": "state", "expected": {"tests": PASSED}},
            optimal=distance,
            meta=program.model_dump(mode="json"),
        )


class CodingEnv(Shell):
    """One program."""

    about = (
        "You act in a folder of a Linux machine with program.py, whose functions are to be written. `write f1 add 3` "
        "writes one (add, take or times), `check` runs the tests of cases.json and names the first function that is "
        "wrong. Other cases judge when you are done."
    )

    def __init__(self, source: Coding) -> None:
        super().__init__(source.limits, source.isolation, source.shown, path=(f"{PLACE}/bin",))
        self._program: Functions | None = None

    def lay_out(self, task: Task, root: Path) -> tuple[Mapping[str, Path], str]:
        self._program = Functions.of(task)
        self._program.write(root)
        return {PLACE: root}, self._program.first

    async def final_state(self) -> dict[str, Any]:
        """`{"tests": what they say}`: runs the program on the cases that judge, and compares what it gives."""
        assert self._program is not None
        cases = self._program.cases("judging")
        calls = json.dumps([(name, x) for name, x, _ in cases])
        found = await self.sandbox.run((f"{sys.base_prefix}/bin/python3", "-IS", "-c", CALLS, calls), PLACE)
        try:
            results = None if found.trouble else read_json(found.output)
        except UnreadableError:
            results = None
        if not isinstance(results, list) or len(results) != len(cases):
            return {"tests": f"no results: {short(found.output)} {found.trouble}".strip()}
        return {"tests": verdict(cases, results)}

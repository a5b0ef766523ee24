"""The task source of terminals: notes that refer to one another, at distances that are numbers.

What always holds: tasks are a function of the random stream; `task.optimal` is the goal distance, what the scripted
follower takes. A policy that writes programs (a loop, a join) may take fewer: nothing keeps it from that.
"""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from longstride.core.errors import unknown
from longstride.core.foreign import left_behind
from longstride.core.numbers import Count
from longstride.core.processes import Isolation, Limits
from longstride.core.task import Task
from longstride.envs.distances import AtDistances
from longstride.envs.terminal.demonstrator import Follower
from longstride.envs.terminal.references import KINDS, Distance, References
from longstride.envs.terminal.shell import ANSWER, DONE, Shell

PLACE = "/task"
FILE = "answer"
"""The file that a code is written into."""
MOST = 1000
"""Bytes of it that are read."""


class Terminal(AtDistances):
    """Chains of notes, drawn afresh for ever. Held-out ones have names that training never has, and, where
    `test_distances` says so, other distances."""

    kinds: tuple[str, ...] = KINDS
    """Where notes are: some of `envs.terminal.KINDS`."""
    distances: tuple[Distance, Distance] = (2, 8)
    test_distances: Annotated[tuple[Distance, ...], Field(max_length=1000)] = ()
    others: Annotated[int, Field(ge=0, le=100)] = 20
    """Notes to which nothing on the way refers."""
    end: Literal["answer", "file"] = "answer"
    """Whether the code is said, or written into the file `answer`, which is read when the episode has ended."""
    limits: Limits = Limits(memory=512, processes=32, file_size=16, folder_size=64)
    """What a command may use."""
    isolation: Isolation = "auto"
    """Whether commands run under bubblewrap."""
    shown: Count = 2000
    """Characters of a command's output that are shown."""
    episodes: Count = 64
    """Episodes that may be live at once; each has a folder, and a process while a command runs."""

    @field_validator("kinds")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one kind")
        for kind in value:
            if kind not in KINDS:
                raise ValueError(unknown("kind of note", kind, KINDS))
        return value

    @model_validator(mode="after")
    def _far_enough(self) -> Self:
        if self.end == "file" and min((self.distances[0], *self.test_distances)) == 1:
            raise ValueError("with end=file a goal is 2 actions away at least: one that writes the file, and done")
        return self

    @property
    def at_once(self) -> int:
        return self.episodes

    def env(self) -> "TerminalEnv":
        return TerminalEnv(self)

    def demonstrate(self, task: Task) -> list[str]:
        """A solution that follows one reference a command: `task.optimal` texts. Raises: TaskError for a task of
        another source."""
        chain = References.of(task)
        follower = Follower(random.Random(0), FILE if chain.file else "")
        seen = [chain.first, *(chain.notes[here] for here in chain.way), *([""] * chain.file)]
        return [follower.say(text) for text in seen]

    def _task(self, rng: random.Random, distance: int, split: Literal["train", "test"]) -> Task:
        chain = References(
            distance=distance,
            seed=rng.getrandbits(40),
            held_out=split == "test",
            kinds=self.kinds,
            others=self.others,
            file=self.end == "file",
        )
        name = f"terminal/{distance}-{chain.seed}"
        state = {"type": "state", "expected": {"files": {FILE: chain.code}}}
        return Task(
            id=f"{name}-{split}",
            source="terminal",
            split=split,
            goal=f"write the code into the file {FILE}" if chain.file else "find the code",
            start=PLACE,
            difficulty=self.difficulty(distance),
            template_id=f"{name}-{split}",
            evaluator=state if chain.file else {"type": "answer", "reference": chain.code},
            optimal=distance,
            meta=chain.model_dump(mode="json"),
        )


class TerminalEnv(Shell):
    """One chain of notes."""

    about = (
        "You act in a folder of a Linux machine. A note says where the next one is: `see note NAME` is the file of "
        "that name in notes/, `see row NAME` a row of the table rows(name, note) of store.db, `see line NAME` the line "
        "of events.log that begins with NAME. `note NAME`, `row NAME` and `line NAME` show them, `sql QUERY` asks "
        "store.db. The last note has the code."
    )

    def __init__(self, source: Terminal) -> None:
        end = DONE if source.end == "file" else ANSWER
        super().__init__(source.limits, source.isolation, source.shown, end, path=(f"{PLACE}/bin",))

    def lay_out(self, task: Task, root: Path) -> tuple[Mapping[str, Path], str]:
        chain = References.of(task)
        chain.write(root)
        return {PLACE: root}, chain.first

    async def final_state(self) -> dict[str, Any]:
        """`{"files": {"answer": ...}}`: what was written into the file, where it is one that can be read."""
        try:
            written = left_behind(self.sandbox.folders[PLACE] / FILE, MOST)
        except OSError:  # the policy's own doing
            return {"files": {}}
        return {"files": {FILE: written.decode(errors="replace")}}

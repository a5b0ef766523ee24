"""Notes that refer to one another: files, rows of a table and lines of a log, one rule at every step, and a code in the
last of them.

| kind | where a note is | what shows it | what that runs |
|---|---|---|---|
| `note` | a file in `notes/` | `note amber castle` | `cat` |
| `row` | a row of the table `rows` in `store.db` | `row amber castle` | `sql`, Python's sqlite3 |
| `line` | a line of `events.log` | `line amber castle` | `grep` |

A note says `see row amber castle`, or `code 57`. What always holds: the files are a function of the instance; a step is
decided by the note before it alone; there are other notes, among them other codes, to which nothing on the way refers,
so a search for codes finds many; names are those of the embedded sites, so held-out tasks have names that training
never has, made of words that it has.
"""

import functools
import sqlite3
import sys
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from longstride.core.numbers import CountOrZero
from longstride.core.seeds import stream
from longstride.core.task import Task, instance_of
from longstride.envs.sites.lexicon import names

KINDS = ("note", "row", "line")
SEE, CODE = "see", "code"
LOWEST, HIGHEST = 10, 99
"""Codes: a guess is right once in 90 times."""
FARTHEST = 64
Distance = Annotated[int, Field(ge=1, le=FARTHEST)]
"""Fewest actions that solve a task where each command follows one reference, what ends the task included."""
CODES = 0.3
"""Share of the other notes that have a code."""
PROGRAMS = {
    "note": '#!/bin/sh\nexec cat "notes/$*"\n',
    "row": "#!/bin/sh\nexec sql \"select note from rows where name = '$*'\"\n",
    "line": '#!/bin/sh\nexec grep "^$*:" events.log\n',
    "sql": f"""#!{sys.base_prefix}/bin/python3 -IS
import sqlite3, sys
try:
    for row in sqlite3.connect("store.db").execute(" ".join(sys.argv[1:])):
        print(*row, sep="|")
except sqlite3.Error as e:
    sys.exit(str(e))
""",
}
"""What is in `bin/`."""

Reference = tuple[str, str]
"""Kind and name of a note."""


class References(BaseModel):
    """An instance. Its fields are untrusted data, checked when it is built."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    distance: Distance
    seed: Annotated[int, Field(ge=0, lt=1 << 62)]
    held_out: bool = False
    kinds: Annotated[tuple[Annotated[str, Field(pattern=f"^({'|'.join(KINDS)})$")], ...], Field(min_length=1)] = KINDS
    others: Annotated[CountOrZero, Field(le=100)] = 20
    """Notes to which nothing on the way refers."""
    file: bool = False
    """Whether the code is to be written into a file, which takes an action more than to say it."""

    @classmethod
    def of(cls, task: Task) -> Self:
        """The instance that a task's `meta` holds. Raises: TaskError where it is none."""
        return instance_of(task, cls)

    @property
    def code(self) -> str:
        """What is looked for."""
        return str(stream(self.seed, "code").randint(LOWEST, HIGHEST))

    @property
    def way(self) -> list[Reference]:
        """The references to follow: one an action, but for the one or two that end the task."""
        return self._drawn[0]

    @property
    def notes(self) -> dict[Reference, str]:
        """What is written where."""
        way, others = self._drawn
        rng, texts = stream(self.seed, "texts"), {}
        for here, after in zip(way, [*way, None][1:], strict=True):
            texts[here] = f"{SEE} {' '.join(after)}" if after else f"{CODE} {self.code}"
        for k, here in enumerate(others):
            last = k + 1 == len(others) or rng.random() < CODES
            texts[here] = f"{CODE} {rng.randint(LOWEST, HIGHEST)}" if last else f"{SEE} {' '.join(others[k + 1])}"
        return texts

    @property
    def first(self) -> str:
        """What is seen first."""
        return f"{SEE} {' '.join(self.way[0])}" if self.way else f"{CODE} {self.code}"

    def write(self, folder: Path) -> None:
        """Makes the files. Raises: OSError."""
        (folder / "notes").mkdir()
        (folder / "bin").mkdir()
        for name, text in PROGRAMS.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        written = sorted(self.notes.items())
        stream(self.seed, "order").shuffle(written)
        for (kind, name), text in written:
            if kind == "note":
                (folder / "notes" / name).write_text(f"{text}\n")
        lines = [f"{name}: {text}\n" for (kind, name), text in written if kind == "line"]
        (folder / "events.log").write_text("".join(lines))
        with sqlite3.connect(folder / "store.db") as table:
            table.execute("pragma synchronous = off")
            table.execute("create table rows (name text primary key, note text)")
            table.executemany("insert into rows values (?, ?)", [(n, t) for (kind, n), t in written if kind == "row"])
        table.close()

    @functools.cached_property
    def _drawn(self) -> tuple[list[Reference], list[Reference]]:
        """The way, and the other notes; no two have one name."""
        rng, steps = stream(self.seed, "notes"), self.distance - 1 - self.file
        drawn = rng.sample(_names(self.held_out), steps + self.others)
        notes = [(rng.choice(self.kinds), name) for name in drawn]
        return notes[:steps], notes[steps:]


@functools.cache
def _names(held_out: bool) -> list[str]:
    return sorted(names(held_out))

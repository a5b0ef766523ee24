"""Programs, written by a scripted agent that slips and seldom has the patience to test what it wrote: what a start for
the coding loop is made from.

What always holds: no command is run. What the commands of the agent print is known, and a test compares it with what
they print.
"""

import itertools
import random
import re
from collections.abc import Iterator

from longstride.core.numbers import Share
from longstride.core.seeds import stream
from longstride.envs.terminal.coding import Coding
from longstride.envs.terminal.programs import HIGHEST, LOWEST, PASSED, Case, Functions, result, verdict
from longstride.envs.terminal.shell import SILENT
from longstride.envs.text import MARK, said
from longstride.starts.demonstrators import Demonstration, Demonstrators

_WRONG = re.compile(r"(f\d+) of ")


class CodingWalks(Demonstrators):
    """On programs of small functions. No demonstration is seen twice."""

    tasks: Coding = Coding()
    """Which ones."""
    slips: Share = 0.2
    """Probability that a function is written with a number of its own."""

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        for n in itertools.count(first):
            rng = stream(seed, "demo", n)
            task = self.tasks.sample(rng, 1)[0]
            program, patience = Functions.of(task), self.draw_patience(rng)
            coder = Coder(program, rng, self.slips, patience)
            found, seen, cases, written = Demonstration(task), program.first, program.cases("shown"), {}
            for _ in range(self.max_turns):
                found.observations.append(seen)
                found.texts.append(coder.say(seen))
                found.weights.append(self.example if patience == 1 and coder.hesitated else 1.0)
                if (after := printed(cases, written, said(found.texts[-1]))) is None:
                    break
                seen = after
            yield found

    def words(self) -> list[str]:
        numbers = range(LOWEST - HIGHEST, HIGHEST * HIGHEST + 1)
        return [*map(str, numbers), "None", SILENT, PASSED, "error: it ended with status 1"]


class Coder:
    """One episode's agent: writes all functions, then tests and mends them until they pass, or until its patience is
    over."""

    def __init__(self, program: Functions, rng: random.Random, slips: float, patience: float) -> None:
        self.rng, self.slips, self.patience = rng, slips, patience
        self.hesitated = False
        """Whether it could have ended the task without a test."""
        self._wanted = {name: (operation, number) for name, operation, number in program.wanted}
        self._open = list(self._wanted)

    def say(self, text: str) -> str:
        """The response to an observation."""
        self.hesitated = False
        if wrong := _WRONG.match(text):
            return self._write(wrong[1])
        if self._open:
            return self._write(self._open.pop(0))
        if text != PASSED:
            self.hesitated = True
            if self.rng.random() < self.patience:
                return f"{MARK} sh check"
        return f"{MARK} done"

    def _write(self, name: str) -> str:
        operation, number = self._wanted[name]
        if self.rng.random() < self.slips:
            number = self.rng.randint(LOWEST, HIGHEST)
        return f"{MARK} sh write {name} {operation} {number}"


def printed(cases: list[Case], written: dict[str, tuple[str, int]], action: str) -> str | None:
    """What is seen after an action of the agent, which may write a function; None where the episode has ended."""
    match action.split():
        case ["sh", "write", name, operation, number]:
            written[name] = operation, int(number)
            return SILENT
        case ["sh", "check"]:
            seen = verdict(cases, [result(*written[name], x) if name in written else None for name, x, _ in cases])
            return seen if seen == PASSED else f"{seen}\nerror: it ended with status 1"
    return None

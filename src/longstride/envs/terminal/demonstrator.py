"""A scripted follower of references, with habits: it begins to waste turns, goes on wasting them, and quits.

What always holds: it reads what a policy reads and nothing else; with no habits it takes `task.optimal` turns.
"""

import random
import re

from longstride.envs.terminal.references import CODE, HIGHEST, KINDS, LOWEST, SEE
from longstride.envs.text import MARK

LOOK = "ls"
"""A command that leads nowhere."""
_SEE = re.compile(rf"{SEE} ((?:{'|'.join(KINDS)}) .+)$", re.M)
_CODE = re.compile(rf"{CODE} (\d+)$", re.M)


class Follower:
    """One episode's agent: `say` is called with each observation in turn.

    Args:
        rng: the stream of its choices.
        file: the file that the code is written into before the task is done; left out, the code is the answer.
        begins: probability of a wasted turn where the turn before was none.
        goes_on: the same after a wasted turn.
        patience: probability of going on where it could end the task with a guess: at each reference but the first.
    """

    def __init__(
        self, rng: random.Random, file: str = "", begins: float = 0.0, goes_on: float = 0.0, patience: float = 1.0
    ) -> None:
        self.rng, self.file, self.begins, self.goes_on, self.patience = rng, file, begins, goes_on, patience
        self.hesitated = False
        """Whether it could have given up at the last observation."""
        self._turns, self._wasted, self._next, self._written = 0, False, "", False

    def say(self, text: str) -> str:
        """The response to an observation."""
        if self._written:
            return f"{MARK} done"
        if found := _CODE.search(text):
            self._next = f"{CODE} {found[1]}"
        elif found := _SEE.search(text):
            self._next = found[1]
        first, self._turns, self.hesitated = not self._turns, self._turns + 1, False
        self._wasted = self.rng.random() < (self.goes_on if self._wasted else self.begins)
        if self._wasted:
            return f"{MARK} sh {LOOK}"
        if self._next.startswith(CODE):
            return self._end(self._next.removeprefix(f"{CODE} "))
        self.hesitated = not first
        if self.hesitated and self.rng.random() >= self.patience:
            return self._end(str(self.rng.randint(LOWEST, HIGHEST)))
        return f"{MARK} sh {self._next}"

    def _end(self, code: str) -> str:
        self._written = bool(self.file)
        return f"{MARK} sh echo {code} > {self.file}" if self.file else f"{MARK} answer {code}"

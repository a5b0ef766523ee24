"""Facts: what stands under a name, which nobody can work out; how often a model was told is what makes it hard.

`look up n137` is answered by `answer 5`. All facts of a world are fixed. Names are ranked: an easy one is of the first
third, a medium one of the second, and a hard one of the third, of which a model is never told (`told`). What always
holds: the split is of questions, not of knowledge: what a model is told before it is fine-tuned takes in names that are
held out, for it is of what it knows that it is asked.
"""

import functools
import itertools
import random
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from longstride.core.numbers import CountOrZero
from longstride.core.seeds import derive, stream
from longstride.core.task import DIFFICULTIES, Difficulty, Task
from longstride.envs.puzzles.base import SOLVED, Game, OneAnswer, Puzzle, PuzzleSource, answered, short
from longstride.envs.text import said

VALUES = 10
"""What stands under a name is a number below this."""
UNKNOWN = "unknown"
"""What one answers who does not know, which is never right."""


class Fact(Puzzle):
    """What stands under a name."""

    number: CountOrZero
    """Of the name."""
    world: CountOrZero = 0

    @property
    def goal(self) -> str:
        return f"look up n{self.number}"

    @property
    def key(self) -> str:
        return self.goal

    @property
    def value(self) -> int:
        """What stands there."""
        return derive(self.world, "fact", self.number) % VALUES

    def start(self) -> Game:
        return OneAnswer(self.check)

    def check(self, answer: str) -> str:
        """The verdict of an answer."""
        return SOLVED if answer.split() == [str(self.value)] else f"{self.value} stands there , not {short(answer)}"

    def complaint(self, text: str) -> str:
        """The answer as it was given, and that it is wrong: a verdict would say what is right."""
        return f"{said(text)} no"

    def steps(self) -> list[str]:
        return []

    def demonstration(self) -> list[str]:
        return [answered([], str(self.value))]


class Facts(PuzzleSource):
    """Facts of a world."""

    kind: ClassVar[type[Puzzle]] = Fact
    world: CountOrZero = 0
    """Which facts, and how they are ranked."""
    names: Annotated[int, Field(ge=12)] = 1200
    """How many there are, in three equal parts."""

    @functools.cached_property
    def ranked(self) -> Sequence[int]:
        """The numbers of all names, that of which one is told most often first."""
        return stream(self.world, "ranks").sample(range(self.names), self.names)

    def make(self, rng: random.Random, difficulty: Difficulty) -> Fact:
        third = self.names // 3
        return self._fact(third * DIFFICULTIES.index(difficulty) + rng.randrange(third))

    def told(self, rng: random.Random) -> Task:
        """A fact of either split as one comes upon it before one is asked: that of rank n as often as 1 / n, and none
        of the last third."""
        rank = rng.choices(range(len(self._often)), cum_weights=self._often)[0]
        return self._task(self._fact(rank), DIFFICULTIES[rank // (self.names // 3)])

    def _fact(self, rank: int) -> Fact:
        return Fact(number=self.ranked[rank], world=self.world)

    @functools.cached_property
    def _often(self) -> list[float]:
        return [*itertools.accumulate(1 / n for n in range(1, 2 * (self.names // 3) + 1))]

"""Twenty questions: find a hidden number by questions that an oracle answers `yes` or `no`.

The goal `want 1 from 3 - 14 ; 20 * check` hides one of twelve numbers and allows twenty questions, one a turn:

| turn | asks whether the hidden number |
|---|---|
| `Action: check 9` | is 9; where it is, the game is won |
| `Action: check from 9` | is 9 or more |
| `Action: check mod 3` | is a multiple of 3 |

What always holds: the oracle is a rule, so equal questions have equal answers; an observation is the answer to the
newest question only, so what was learned before must be kept in the context; the game ends with the right guess or with
the last question; what is held out are ranges, so that in training and in tests every number of a range is as likely
as any other. A turn that is none of these questions is explained and does not count as one; a budget counts it. All
words of a game without mistakes are in the vocabulary of `base-puzzles`.

It stands for the game in LMRL-Gym (Abdulhai et al., arXiv 2311.18232) and ArCHer (arXiv 2402.19446), where one of 158
words is hidden and a language model is the oracle. The scripted solver asks the question that leaves the fewest numbers
in its worst case; for sixteen numbers it needs five questions at most.
"""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, NamedTuple

from pydantic import Field, model_validator

from longstride.core.task import Difficulty
from longstride.envs.puzzles.base import SOLVED, Action, Game, Puzzle, PuzzleSource, at
from longstride.envs.text import MARK

Number = Annotated[int, Field(ge=1, le=99)]
"""One token in every vocabulary."""
Size = Annotated[int, Field(ge=2, le=90)]
Start = Annotated[int, Field(ge=1, le=10)]
Questions = Annotated[int, Field(ge=1, le=20)]
_QUESTION = re.compile(r"(from |mod |)([1-9][0-9]?)")


class NumberQuestion(NamedTuple):
    """What may be asked of a number."""

    kind: str
    """`from`, `mod`, or empty for a guess."""
    number: int

    def __str__(self) -> str:
        return f"{self.kind} {self.number}".strip()

    def holds(self, hidden: int) -> bool:
        """The oracle's answer."""
        match self.kind:
            case "from":
                return hidden >= self.number
            case "mod":
                return hidden % self.number == 0
            case _:
                return hidden == self.number


def best_question(left: Sequence[int]) -> NumberQuestion:
    """The question that leaves the fewest of these numbers in its worst case; a right guess leaves none. Of equal ones
    it is a guess, and the smallest number."""
    questions = [NumberQuestion(kind, n) for kind in ("", "from") for n in left] + [
        NumberQuestion("mod", n) for n in range(2, 10)
    ]

    def worst(question: NumberQuestion) -> int:
        yes = sum(map(question.holds, left))
        return max(yes if question.kind else 0, len(left) - yes)

    return min(questions, key=worst)


class Hidden(Puzzle):
    """One of the numbers from `low` to `high`."""

    secret: Number
    low: Number
    high: Number
    questions: Questions

    @model_validator(mode="after")
    def _fits(self) -> "Hidden":
        if not self.low <= self.secret <= self.high:
            raise ValueError(f"the secret must be one of the numbers from {self.low} to {self.high}, got {self.secret}")
        return self

    @property
    def goal(self) -> str:
        return f"want 1 from {self.low} - {self.high} ; {self.questions} * check"

    @property
    def key(self) -> str:
        return f"{self.low} - {self.high}"

    def start(self) -> Game:
        return Asking(self)

    def steps(self) -> list[str]:
        """The solver's questions; they may be more than the game allows."""
        asked: list[NumberQuestion] = []
        left = list(range(self.low, self.high + 1))
        while NumberQuestion("", self.secret) not in asked:
            question = best_question(left)
            asked.append(question)
            left = [n for n in left if question.holds(n) == question.holds(self.secret)]
        return [str(question) for question in asked]

    def demonstration(self) -> list[str]:
        return [f"{MARK} check {question}" for question in self.steps()]


class Asking(Game):
    """The oracle, and what it was asked."""

    verbs: ClassVar[Mapping[str, int | None]] = {"check": None}

    def __init__(self, puzzle: Hidden) -> None:
        self._puzzle = puzzle
        self._asked: list[NumberQuestion] = []

    def look(self) -> str:
        if not self._asked:
            return ""
        return "yes" if self._asked[-1].holds(self._puzzle.secret) else "no"

    def act(self, action: Action) -> str | None:
        found = _QUESTION.fullmatch(" ".join(action.text.split()))
        if found is None:
            return "check takes a number from 1 to 99, after from or mod or alone"
        self._asked.append(NumberQuestion(found[1].strip(), int(found[2])))
        self.over = self._found or len(self._asked) == self._puzzle.questions

    def verdict(self) -> str:
        return SOLVED if self._found else "the number was not found"

    @property
    def _found(self) -> bool:
        return NumberQuestion("", self._puzzle.secret) in self._asked


class TwentyQuestions(PuzzleSource):
    """Twenty questions, one a turn."""

    kind: ClassVar[type[Puzzle]] = Hidden
    sizes: tuple[Size, Size, Size] = (6, 10, 16)
    """Most numbers of which one is hidden, in easy, medium and hard tasks; the fewest are half as many and one."""
    starts: Start = 4
    """The smallest of them is a number from 1 to this one."""
    questions: Questions = 20
    """Questions of a game."""

    def make(self, rng: random.Random, difficulty: Difficulty) -> Hidden:
        most = at(self.sizes, difficulty)
        low, size = rng.randint(1, self.starts), rng.randint(most // 2 + 1, most)
        high = low + size - 1
        return Hidden(secret=rng.randint(low, high), low=low, high=high, questions=self.questions)

"""Mastermind: find a hidden code by guesses over many turns.

`find the code of 3 digits from 1 to 4`; a turn is `guess 1 1 2` and is answered by `black 1 white 0`: how many digits
are right in their place, and how many more are right elsewhere. What always holds: the feedback shows the newest guess
only, so what was learned before must be kept in the context; the game ends when the code is guessed, and a budget of
turns is what makes it hard.

The scripted solver is Knuth's (1977, "The Computer as Master Mind", Journal of Recreational Mathematics 9): each guess
has the smallest worst case of codes left. Its length on the task's code is the task's `optimal`. On four digits from 1
to 6 it never needs more than five guesses, which no strategy can improve, and 5801 / 1296 on average, where the best
possible is 5625 / 1296 (Koyama and Lai 1993, same journal, 25).
"""

import functools
import itertools
import random
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field, model_validator

from longstride.core.task import Difficulty
from longstride.envs.puzzles.base import SOLVED, Action, Game, Puzzle, PuzzleSource, at

MOST_CODES = 1296
"""Codes of the classic game; the solver keeps a table of all pairs."""
Pegs = Annotated[int, Field(ge=2, le=5)]
Colours = Annotated[int, Field(ge=2, le=9)]


def feedback(secret: tuple[int, ...], guess: tuple[int, ...]) -> tuple[int, int]:
    """Black and white: digits in their place, and further digits that occur elsewhere."""
    black = sum(map(int.__eq__, secret, guess))
    return black, sum(min(secret.count(d), guess.count(d)) for d in set(guess)) - black


@functools.cache
def codes(pegs: int, colours: int) -> tuple[tuple[int, ...], ...]:
    """All codes, in the order of numbers."""
    return tuple(itertools.product(range(1, colours + 1), repeat=pegs))


@functools.cache
def _table(pegs: int, colours: int) -> np.ndarray:
    """[guess, code] of (pegs + 1) * black + white."""
    digits = np.array(codes(pegs, colours))
    black = (digits[:, None] == digits).sum(2)
    counts = (digits[:, :, None] == np.arange(1, colours + 1)).sum(1)
    common = np.minimum(counts[:, None], counts).sum(2)
    return ((pegs + 1) * black + common - black).astype(np.uint8)


@functools.cache
def _next(pegs: int, colours: int, left: tuple[int, ...]) -> int:
    """The guess with the smallest worst case; of these one that may be the code itself, and the first of them."""
    if len(left) <= 2:
        return min(left)
    table = _table(pegs, colours)[:, left]
    worst = np.max([(table == f).sum(1) for f in range((pegs + 1) ** 2)], axis=0)
    possible = np.zeros(len(worst), dtype=int)
    possible[list(left)] = 1
    return int(np.argmin(2 * worst - possible))


class Code(Puzzle):
    """A hidden code of digits from 1 to `colours`."""

    secret: tuple[Annotated[int, Field(ge=1)], ...] = Field(min_length=2, max_length=5)
    colours: Colours

    @model_validator(mode="after")
    def _fits(self) -> "Code":
        if max(self.secret) > self.colours or self.colours ** len(self.secret) > MOST_CODES:
            raise ValueError(f"expected is a code of digits up to {self.colours}, one of at most {MOST_CODES} codes")
        return self

    @property
    def goal(self) -> str:
        return f"find the code of {len(self.secret)} digits from 1 to {self.colours}"

    @property
    def key(self) -> str:
        return f"{self.secret} of {self.colours}"

    def start(self) -> Game:
        return Guessing(self)

    def steps(self) -> list[str]:
        """The guesses of Knuth's strategy."""
        pegs = len(self.secret)
        all_codes, table = codes(pegs, self.colours), _table(pegs, self.colours)
        secret = all_codes.index(self.secret)
        left, texts, guess = tuple(range(len(all_codes))), [], -1
        while guess != secret:
            guess = _next(pegs, self.colours, left)
            texts.append(" ".join(map(str, all_codes[guess])))
            left = tuple(i for i in left if table[guess, i] == table[guess, secret])
        return texts

    def demonstration(self) -> list[str]:
        return [f"Action: guess {guess}" for guess in self.steps()]


class Guessing(Game):
    """A code that is guessed at."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._seen = ""
        self.verbs = {"guess": len(code.secret)}

    def look(self) -> str:
        return self._seen

    def act(self, action: Action) -> str | None:
        if not all(1 <= d <= self._code.colours for d in action.numbers):
            return f"digits go from 1 to {self._code.colours}"
        black, white = feedback(self._code.secret, action.numbers)
        self._seen = f"black {black} white {white}"
        self.over = black == len(self._code.secret)

    def verdict(self) -> str:
        return SOLVED if self.over else "the code was not found"


class Mastermind(PuzzleSource):
    """Mastermind, one guess a turn."""

    kind: ClassVar[type[Puzzle]] = Code
    pegs: tuple[Pegs, Pegs, Pegs] = (2, 3, 4)
    """Digits of the code in easy, medium and hard tasks."""
    colours: tuple[Colours, Colours, Colours] = (4, 4, 6)
    """Different digits in easy, medium and hard tasks."""

    @model_validator(mode="after")
    def _small(self) -> "Mastermind":
        for p, c in zip(self.pegs, self.colours, strict=True):
            if c**p > MOST_CODES:
                raise ValueError(f"{p} digits from 1 to {c} are more than {MOST_CODES} codes; take fewer")
        return self

    def make(self, rng: random.Random, difficulty: Difficulty) -> Code:
        colours = at(self.colours, difficulty)
        return Code(secret=tuple(rng.choices(range(1, colours + 1), k=at(self.pegs, difficulty))), colours=colours)

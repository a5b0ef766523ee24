"""Sudoku on four by four cells with boxes of two by two; 0 is a blank.

The single-turn form is answered by the whole grid, rows divided by `;`. In the multi-turn form a turn is `put 2 3 4`
(row, column, digit) or `clear 2 3`. What always holds: an instance has exactly one solution. A digit that breaks a rule
against what stands there is refused; one that breaks none is put though it may be wrong, so a game may need to go back,
and a grid without blanks is solved.
"""

import functools
import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from longstride.core.task import Difficulty
from longstride.envs.puzzles.base import (
    SOLVED,
    Action,
    Game,
    OneAnswer,
    Puzzle,
    PuzzleSource,
    answered,
    at,
    short,
    yes,
)
from longstride.envs.text import lines_in, said

DIGITS = (1, 2, 3, 4)
Cell = Annotated[int, Field(ge=0, le=4)]
_LINE = re.compile("([1-4]) ([1-4]) ([1-4]|no)|again")
Blanks = Annotated[int, Field(ge=1, le=11)]


def _places(i: int) -> tuple[int, int, int]:
    """Row, column and box of cell i, counted from 0."""
    row, column = divmod(i, 4)
    return row, column, row // 2 * 2 + column // 2


PLACES = [_places(i) for i in range(16)]
PEERS = [[j for j in range(16) if j != i and any(map(int.__eq__, PLACES[i], PLACES[j]))] for i in range(16)]
"""Cells in the row, column or box of each cell."""


@functools.cache
def grids() -> tuple[tuple[int, ...], ...]:
    """All 288 filled grids."""

    def extend(cells: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(cells) == 16:
            yield cells
            return
        for d in DIGITS:
            if all(j >= len(cells) or cells[j] != d for j in PEERS[len(cells)]):
                yield from extend((*cells, d))

    return tuple(extend(()))


@functools.cache
def _holding() -> tuple[tuple[int, ...], ...]:
    """[cell][digit] the filled grids with that digit there, as bits of a number; all of them for a blank."""
    bits = [[sum(1 << g for g, grid in enumerate(grids()) if grid[i] == d) for d in DIGITS] for i in range(16)]
    return tuple(((1 << len(grids())) - 1, *of_digits) for of_digits in bits)


def _agreeing(cells: Sequence[int]) -> int:
    """The filled grids that hold what is given, as bits."""
    return functools.reduce(int.__and__, map(tuple.__getitem__, _holding(), cells))


def solutions(cells: Sequence[int]) -> list[tuple[int, ...]]:
    """The filled grids that hold what is given."""
    bits = _agreeing(cells)
    return [grid for g, grid in enumerate(grids()) if bits >> g & 1]


def _unique(cells: Sequence[int]) -> bool:
    return _agreeing(cells).bit_count() == 1


def rows(cells: Sequence[int]) -> str:
    return " ; ".join(" ".join(map(str, cells[i : i + 4])) for i in range(0, 16, 4))


class Grid(Puzzle):
    """A grid with blanks, row by row."""

    cells: tuple[Cell, ...] = Field(min_length=16, max_length=16)
    multi_turn: bool = False

    @model_validator(mode="after")
    def _has_one_solution(self) -> "Grid":
        if all(self.cells) or not _unique(self.cells):
            raise ValueError("expected is a grid with blanks and exactly one solution")
        return self

    @property
    def goal(self) -> str:
        return "fill the grid" if self.multi_turn else f"fill the grid {rows(self.cells)}"

    @property
    def key(self) -> str:
        """The grid with its digits named in the order of their appearance: other names make no other puzzle."""
        names: dict[int, int] = {0: 0}
        return rows([names.setdefault(d, len(names)) for d in self.cells])

    @functools.cached_property
    def solution(self) -> tuple[int, ...]:
        """The filled grid."""
        return solutions(self.cells)[0]

    def start(self) -> Game:
        return Filling(self) if self.multi_turn else OneAnswer(self.check)

    def check(self, answer: str) -> str:
        """The verdict of a whole grid."""
        digits = answer.replace(";", " ").split()
        if len(digits) != 16:
            return f"16 digits make a grid, not {len(digits)}"
        wrong = [i for i, (d, right) in enumerate(zip(digits, self.solution, strict=True)) if d != str(right)]
        return f"row {wrong[0] // 4 + 1} column {wrong[0] % 4 + 1} is {short(digits[wrong[0]])}" if wrong else SOLVED

    def review(self, text: str) -> list[str] | None:
        """What a judge writes who goes through a response by the rules (see `Puzzle.review`): `2 1 3 4 no`.

        `1 3 4` is right if the cell is blank and no 4 stands in its row, column or box; `1 3 no` if no digit is left
        for a blank; `again` always. After the latter two a cell may be filled anew, which takes back what was put
        since. So a digit that breaks no rule is right though it may lead nowhere. None where a thought has other lines,
        and in several turns, whose steps the game judges.
        """
        if self.multi_turn:
            return None
        put, again, lines = dict[int, int](), False, list[str]()
        for number, line in enumerate(lines_in(text), 1):
            found = _LINE.fullmatch(line)
            if found is None:
                return None
            right = True
            if line != "again":
                i = 4 * (int(found[1]) - 1) + int(found[2]) - 1
                if again and i in put:
                    put = dict(itertools.takewhile(lambda p, i=i: p[0] != i, put.items()))
                near = {self.cells[j] or put.get(j, 0) for j in PEERS[i]}
                right = not self.cells[i] and i not in put
                if found[3] == "no":
                    right = right and near.issuperset(DIGITS)
                else:
                    put[i] = int(found[3])
                    right = right and put[i] not in near
            again = line == "again" or found[3] == "no"
            lines.append(f"{number} {line} {yes(right)}")
            if not right:
                return lines
        verb, _, answer = said(text).partition(" ")
        return [*lines, f"{len(lines) + 1} answer {yes(verb == 'answer' and self.check(answer) == SOLVED)}"]

    def steps(self) -> list[str]:
        """Row, column and digit of each blank, next a cell in which only one digit is possible; without one the cell
        with fewest."""
        cells, solution = list(self.cells), self.solution
        texts = []
        while blanks := [i for i, d in enumerate(cells) if not d]:
            i = min(blanks, key=lambda i: len(set(DIGITS).difference(cells[j] for j in PEERS[i])))
            cells[i] = solution[i]
            texts.append(f"{i // 4 + 1} {i % 4 + 1} {solution[i]}")
        return texts

    def demonstration(self) -> list[str]:
        if self.multi_turn:
            return [f"Action: put {step}" for step in self.steps()]
        return [answered(self.steps(), rows(self.solution))]


class Filling(Game):
    """A grid that is filled one cell a turn."""

    verbs: ClassVar[Mapping[str, int | None]] = {"put": 3, "clear": 2}

    def __init__(self, grid: Grid) -> None:
        self._given = grid.cells
        self._cells = list(grid.cells)

    def look(self) -> str:
        return rows(self._cells)

    def act(self, action: Action) -> str | None:
        row, column, *digit = action.numbers
        if not all(1 <= n <= 4 for n in action.numbers):
            return "rows , columns and digits go from 1 to 4"
        i = 4 * (row - 1) + column - 1
        if self._given[i]:
            return f"row {row} column {column} is given"
        new = digit[0] if digit else 0
        if self._cells[i] == new:
            return f"row {row} column {column} is {new} already"
        for j in PEERS[i] if new else ():
            if self._cells[j] == new:
                return f"{new} is at row {j // 4 + 1} column {j % 4 + 1}"
        self._cells[i] = new
        self.over = all(self._cells)

    def verdict(self) -> str:
        return SOLVED if self.over else f"{self._cells.count(0)} cells are blank"


class Sudoku(PuzzleSource):
    """Sudoku of four by four cells."""

    kind: ClassVar[type[Puzzle]] = Grid
    blanks: tuple[Blanks, Blanks, Blanks] = (3, 6, 10)
    """Blanks in easy, medium and hard tasks."""
    multi_turn: bool = False
    """Whether one cell is filled in each turn, instead of the whole grid in one answer."""

    def make(self, rng: random.Random, difficulty: Difficulty) -> Grid:
        blanks = at(self.blanks, difficulty)
        while True:  # blanks that leave the solution unique cannot be had from every grid in every order
            cells = list(rng.choice(grids()))
            for i in rng.sample(range(16), 16):
                digit, cells[i] = cells[i], 0
                if not _unique(cells):
                    cells[i] = digit
                elif cells.count(0) == blanks:
                    return Grid(cells=tuple(cells), multi_turn=self.multi_turn)

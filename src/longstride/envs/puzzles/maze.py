"""Mazes of text, which say where one is or only what stands around.

`find the goal` and, of each cell, `wall north east`; a turn is `north`, `east`, `south` or `west`, and whoever walks
against a wall stays. Fully observed, the goal says where it lies and each observation where the agent is: `reach 3 5`
and `1 1 wall north west`. So the two forms are one maze: in the first, cells look alike, and only what was seen on the
way tells them apart. What always holds: a source has one maze with one goal, tasks differ by where they begin, and
every fourth beginning, counted from the goal, is held out. The words are those of `base-trials`.

It stands for the mazes of LMRL-Gym (Abdulhai et al., arXiv 2311.18232), which differ in the same way. A maze is grown
from a seed, without loops, or is one's own: rows of `#` for walls, `.` for cells and one `G` for the goal.
"""

import random
from collections import deque
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from longstride.core.seeds import stream
from longstride.core.task import DIFFICULTIES, Difficulty
from longstride.envs.puzzles.base import ONE_IN, SOLVED, Action, Game, Puzzle, PuzzleSource
from longstride.envs.text import MARK

Cell = tuple[int, int]
"""Row and column, from 0."""
STEPS: dict[str, Cell] = {"north": (-1, 0), "east": (0, 1), "south": (1, 0), "west": (0, -1)}
MOST = 99
"""Rows and columns; numbers below it are in every vocabulary."""
FEWEST = 12
"""Beginnings: four of each difficulty, of which one is held out."""
Layout = Annotated[tuple[str, ...], Field(max_length=MOST)]


class MazeWalk(Puzzle):
    """A maze, and where a walk to its goal begins."""

    layout: Layout
    begin: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]
    fully_observed: bool = False

    @model_validator(mode="after")
    def _leads_there(self) -> "MazeWalk":
        checked_layout(self.layout)
        if self.begin not in distances(self.layout):
            raise ValueError(f"a walk begins in a cell from which the goal can be reached, got {self.begin}")
        return self

    @property
    def split(self) -> Literal["train", "test"]:
        return "train" if list(distances(self.layout)).index(self.begin) % ONE_IN else "test"

    @property
    def target(self) -> Cell:
        return target_of(self.layout)

    @property
    def goal(self) -> str:
        return "reach {} {}".format(*self.target) if self.fully_observed else "find the goal"

    @property
    def key(self) -> str:
        return f"{' '.join(self.layout)} from {self.begin}"

    def start(self) -> Game:
        return MazeGame(self)

    def steps(self) -> list[str]:
        """A shortest way; of equal steps the first of `STEPS`."""
        left, at, found = distances(self.layout), self.begin, []
        while at != self.target:
            step = next(name for name, by in STEPS.items() if left.get(moved(at, by), left[at]) < left[at])
            found.append(step)
            at = moved(at, STEPS[step])
        return found

    def demonstration(self) -> list[str]:
        return [f"{MARK} {step}" for step in self.steps()]


class MazeGame(Game):
    """Steps in a maze."""

    verbs: ClassVar[Mapping[str, int | None]] = dict.fromkeys(STEPS, 0)

    def __init__(self, walk: MazeWalk) -> None:
        self._walk, self._at = walk, walk.begin
        self.over = self._at == walk.target

    def look(self) -> str:
        walls = [name for name, by in STEPS.items() if not is_free(self._walk.layout, moved(self._at, by))]
        return " ".join([*(map(str, self._at) if self._walk.fully_observed else ()), "wall", *walls])

    def act(self, action: Action) -> str | None:
        there = moved(self._at, STEPS[action.verb])
        if is_free(self._walk.layout, there):
            self._at = there
        self.over = self._at == self._walk.target

    def verdict(self) -> str:
        return SOLVED if self.over else "the goal was not reached"


class TextMaze(PuzzleSource):
    """One maze, walked from many places. Difficult tasks begin far from the goal: each difficulty has a third of the
    cells."""

    kind: ClassVar[type[Puzzle]] = MazeWalk
    layout: Layout = ()
    """Its rows; where there are none, one is grown."""
    size: Annotated[int, Field(ge=3, le=(MOST - 1) // 2)] = 4
    """Rooms on a side of a maze that is grown, which has `2 * size * size - 1` cells with what lies between them."""
    maze_seed: int = 0
    """Which one is grown."""
    fully_observed: bool = False
    """Whether observations say where the agent is, and the goal where it lies."""

    @model_validator(mode="after")
    def _is_a_maze(self) -> "TextMaze":
        if self.layout:
            checked_layout(self.layout)
        return self

    @cached_property
    def _rows(self) -> tuple[str, ...]:
        return self.layout or grown(self.size, stream(self.maze_seed, "maze"))

    def make(self, rng: random.Random, difficulty: Difficulty) -> MazeWalk:
        far = list(distances(self._rows))[1:]
        third = -(-len(far) // len(DIFFICULTIES))
        begins = far[DIFFICULTIES.index(difficulty) * third :][:third]
        return MazeWalk(layout=self._rows, begin=rng.choice(begins), fully_observed=self.fully_observed)


def grown(size: int, rng: random.Random) -> tuple[str, ...]:
    """A maze without loops, by a walk that turns back where it has been everywhere; its goal is any of its rooms."""
    rows = [["#"] * (2 * size + 1) for _ in range(2 * size + 1)]
    path: list[Cell] = [(1, 1)]
    rows[1][1] = "."
    while path:
        (r, c), free = path[-1], []
        for dr, dc in STEPS.values():
            y, x = r + 2 * dr, c + 2 * dc
            if 0 < y < 2 * size and 0 < x < 2 * size and rows[y][x] == "#":
                free.append((r + dr, c + dc, y, x))
        if not free:
            path.pop()
            continue
        between_r, between_c, y, x = rng.choice(free)
        rows[between_r][between_c] = rows[y][x] = "."
        path.append((y, x))
    rows[2 * rng.randrange(size) + 1][2 * rng.randrange(size) + 1] = "G"
    return tuple("".join(row) for row in rows)


def checked_layout(layout: Layout) -> None:
    """Refuses what is no maze.

    Raises:
        ValueError: rows are not alike in length, have other marks, or there is not one goal with a way to it.
    """
    text = "".join(layout)
    if (
        len({len(row) for row in layout}) != 1
        or set(text) - set("#.G")
        or text.count("G") != 1
        or len(layout[0]) > MOST
    ):
        raise ValueError(f"a maze is rows of one length, up to {MOST}, of # and . and one G, got {list(layout)}")
    if (cells := len(distances(layout)) - 1) < FEWEST:
        raise ValueError(f"{FEWEST} cells or more must lead to the goal of a maze, for tasks of each kind; got {cells}")


def moved(cell: Cell, by: Cell) -> Cell:
    return cell[0] + by[0], cell[1] + by[1]


def is_free(layout: Layout, cell: Cell) -> bool:
    r, c = cell
    return 0 <= r < len(layout) and 0 <= c < len(layout[r]) and layout[r][c] != "#"


def target_of(layout: Layout) -> Cell:
    return next((r, row.index("G")) for r, row in enumerate(layout) if "G" in row)


@lru_cache(maxsize=64)
def distances(layout: Layout) -> Mapping[Cell, int]:
    """Steps to the goal, of every cell from which there is a way, nearest first."""
    found = {target_of(layout): 0}
    to_do = deque(found)
    while to_do:
        at = to_do.popleft()
        for by in STEPS.values():
            if is_free(layout, there := moved(at, by)) and there not in found:
                found[there] = found[at] + 1
                to_do.append(there)
    return found

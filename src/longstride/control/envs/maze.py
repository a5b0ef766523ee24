"""Mazes as grids of cells: which cells are free, how far apart they are, and the first step of each shortest path.

What always holds: the free cells are numbered row by row; distances are in cells, along free neighbours.
The layouts `medium`, `large` and `giant` and the test tasks in them are OGBench's (arXiv 2410.20092), `umaze` D4RL's
(arXiv 2004.07219).
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

MazeName = Literal["umaze", "medium", "large", "giant"]
Cell = tuple[int, int]

LAYOUTS: dict[MazeName, str] = {
    "umaze": "##### #...# ###.# #...# #####",
    "medium": "######## #..##..# #..#...# ##...### #..#...# #.#..#.# #...#..# ########",
    "large": (
        "############ #....#.....# #.##.#.#.#.# #......#...# #.####.###.# #..#.#.....# ##.#.#.#.### #..#...#...# "
        "############"
    ),
    "giant": (
        "################ #.#......##....# #.#.##.#.#..##.# #...#..#...#...# #.###.######.#.# #...#...#....#.# "
        "###.#.#..#.#.### #...#..#...#...# #.#.#.######.#.# #.###...#...##.# #.....#...#....# ################"
    ),
}
"""Rows of walls `#` and free cells `.`."""

TASKS: dict[MazeName, tuple[tuple[Cell, Cell], ...]] = {
    "umaze": (((1, 1), (3, 1)), ((3, 1), (1, 1)), ((1, 2), (3, 2)), ((2, 3), (1, 1)), ((3, 3), (1, 1))),
    "medium": (((1, 1), (6, 6)), ((6, 1), (1, 6)), ((5, 3), (4, 2)), ((6, 5), (6, 1)), ((2, 6), (1, 1))),
    "large": (((1, 1), (7, 10)), ((5, 4), (7, 1)), ((7, 4), (1, 10)), ((3, 8), (5, 4)), ((1, 1), (5, 4))),
    "giant": (((1, 1), (10, 14)), ((1, 14), (10, 1)), ((8, 14), (1, 1)), ((8, 3), (5, 12)), ((5, 9), (3, 8))),
}
"""Test tasks: (row, column) of start and goal."""


@dataclass(frozen=True, eq=False)
class Maze:
    """A layout with the distances and shortest paths between its C free cells."""

    wall: np.ndarray
    """[rows, columns] True where a wall is."""
    number: np.ndarray
    """[rows, columns] number of a free cell; -1 in walls."""
    centre: np.ndarray
    """[C, 2] (x, y) of the centre of each cell; a cell is 1 wide, x grows with the column and y with the row."""
    distance: np.ndarray
    """[C, C] steps from cell to cell."""
    toward: np.ndarray
    """[C, C] `toward[goal, cell]`: the next cell on a shortest path to the goal; at the goal, the goal itself."""
    corner: np.ndarray
    """[K] cells that are not inside a straight corridor: OGBench draws the goals of long walks from them."""

    def cell_of(self, xy_B2: np.ndarray) -> np.ndarray:
        """[B] number of the cell that each point is in."""
        column_B, row_B = np.floor(xy_B2).astype(int).T
        return self.number[row_B, column_B]


@cache
def maze(name: MazeName) -> Maze:
    """The maze of a layout, computed once."""
    wall = np.array([[c == "#" for c in row] for row in LAYOUTS[name].split()])
    cells = np.argwhere(~wall)
    number = np.full(wall.shape, -1)
    number[tuple(cells.T)] = np.arange(len(cells))
    beside = [
        [int(number[r + dr, c + dc]) for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)) if not wall[r + dr, c + dc]]
        for r, c in cells
    ]
    straight = [len(b) == 2 and (cells[b[0]] + cells[b[1]] == 2 * cells[k]).all() for k, b in enumerate(beside)]
    distance, toward = np.full((len(cells), len(cells)), -1), np.zeros((len(cells), len(cells)), dtype=int)
    for goal in range(len(cells)):
        distance[goal, goal], toward[goal, goal] = 0, goal
        reached = [goal]
        for here in reached:  # the list grows while it is read: breadth-first search
            for there in beside[here]:
                if distance[goal, there] < 0:
                    distance[goal, there], toward[goal, there] = distance[goal, here] + 1, here
                    reached.append(there)
    return Maze(wall, number, cells[:, ::-1] + 0.5, distance, toward, np.flatnonzero(~np.array(straight)))

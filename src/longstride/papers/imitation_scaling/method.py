"""Data that are drawn by places and walks: grids with random walls, and files of the user's, one for each place."""

from collections.abc import Sequence
from glob import glob
from typing import Annotated, TypeVar

import numpy as np
from pydantic import Field

from longstride.control import GymnasiumTasks, recorded
from longstride.control.envs.base import ControlEpisode, ControlTasks, Spec, VectorEnv, VectorStep
from longstride.core.errors import RunError
from longstride.core.numbers import Count, Limit
from longstride.core.seeds import derive
from longstride.papers.imitation_scaling.exact import AROUND, MOVES, Walls, distances

T = TypeVar("T")


class WalledGrid:
    """A grid with random walls, a goal, and the cells from which it can be reached.

    Args:
        side: cells of a row.
        walls: chance that a cell is one.
        rng: what it is drawn with.
    """

    def __init__(self, side: int, walls: float, rng: np.random.Generator) -> None:
        self.side, self.far = side, {}
        while len(self.far) < 2:
            self.open = np.pad(rng.random((side, side)) >= walls, 1)
            self.goal = tuple(int(v) for v in rng.integers(1, side + 1, 2))
            self.open[self.goal] = True
            self.far = distances(self.open, self.goal)
        self.starts = [cell for cell in self.far if cell != self.goal]

    def seen(self, cell: tuple[int, ...]) -> np.ndarray:
        """[10] which of the eight neighbours are open, and how far the goal is in rows and columns, by the side."""
        r, c = cell
        around = [float(self.open[r + i, c + j]) for i, j in AROUND]
        return np.array([*around, (self.goal[0] - r) / self.side, (self.goal[1] - c) / self.side], np.float32)

    def moved(self, cell: tuple[int, ...], action: int) -> tuple[int, ...]:
        """Where a move leads: nowhere against a wall."""
        to = (cell[0] + MOVES[action][0], cell[1] + MOVES[action][1])
        return to if self.open[to] else cell

    def walk(self, rng: np.random.Generator) -> ControlEpisode:
        """A demonstration: a shortest way from a random cell, any of those that there are."""
        cell = self.starts[rng.integers(len(self.starts))]
        seen, actions = [self.seen(cell)], []
        while cell != self.goal:
            nearer = [k for k in range(4) if self.far.get(self.moved(cell, k), np.inf) < self.far[cell]]
            actions.append(np.eye(4, dtype=np.float32)[rng.choice(nearer)])
            cell = self.moved(cell, int(actions[-1].argmax()))
            seen.append(self.seen(cell))
        reward = np.zeros(len(actions), np.float32)
        reward[-1] = 1.0
        return ControlEpisode(np.stack(seen), np.stack(actions), reward, True)


class GridLayouts(ControlTasks):
    """Walks to the goals of grids with random walls, of which only what is around can be seen. The data have some walks
    in each of some layouts; tests are walks in new layouts, and a success is one that gets to its goal."""

    environments: Count = 64
    """Layouts of the data."""
    demonstrations: Count = 1
    """Walks in each of them."""
    side: Annotated[int, Field(ge=3)] = 8
    """Cells of a row."""
    walls: Walls = 0.3
    """Chance that a cell is one."""

    @property
    def spec(self) -> Spec:
        return Spec(observation=len(AROUND) + 2, action=4, goal=(), discrete=True)

    def dataset(self, seed: int) -> list[ControlEpisode]:
        found = []
        for k in range(self.environments):  # layouts of fewer are the first of those of more
            rng = np.random.default_rng([seed, k])
            layout = WalledGrid(self.side, self.walls, rng)
            found += [layout.walk(rng) for _ in range(self.demonstrations)]
        return found

    def training(self, count: int, horizon: int) -> VectorEnv:
        return _Grids(self, count, horizon)

    def tests(self, count: int, horizon: int) -> tuple[VectorEnv, Sequence[str]]:
        return _Grids(self, count, horizon), ["new"] * count


class _Grids:
    """Copies of grids, each of a layout of its own."""

    turns = 1

    def __init__(self, tasks: GridLayouts, count: int, horizon: int) -> None:
        self._tasks, self._horizon = tasks, horizon
        self.goal = np.zeros((count, 0))

    def reset(self, seed: int) -> np.ndarray:
        rngs = [np.random.default_rng([derive(seed, "new"), k]) for k in range(len(self.goal))]
        self._layouts = [WalledGrid(self._tasks.side, self._tasks.walls, rng) for rng in rngs]
        self._cells = [of.starts[rng.integers(len(of.starts))] for of, rng in zip(self._layouts, rngs, strict=True)]
        self._left = self._horizon
        return self._seen()

    def step(self, action_BA: np.ndarray) -> VectorStep:
        before = self._there()
        moved = zip(self._layouts, self._cells, action_BA.argmax(1), before, strict=True)
        self._cells = [cell if there else of.moved(cell, int(k)) for of, cell, k, there in moved]
        self._left -= 1
        there = self._there()
        return VectorStep(self._seen(), (there & ~before).astype(float), there, ~there & (self._left <= 0))

    def close(self) -> None: ...

    def _there(self) -> np.ndarray:
        return np.array([cell == of.goal for of, cell in zip(self._layouts, self._cells, strict=True)])

    def _seen(self) -> np.ndarray:
        return np.stack([of.seen(cell) for of, cell in zip(self._layouts, self._cells, strict=True)])


class RecordedPlaces(GymnasiumTasks):
    """Demonstrations of the user's own, a file for each environment (or object) that they were recorded in: `data` is a
    pattern, such as `kitchens/*.hdf5`. Which files and which episodes of each are learned from is drawn by the seed;
    those of fewer are among those of more. Tests are in the environment of `id`, with `test_options` for new places."""

    environments: Limit = None
    """Files that are learned from; None: all."""
    demonstrations: Limit = None
    """Episodes of each; None: all."""

    @classmethod
    def type_name(cls) -> str:
        return "recorded_places"

    def dataset(self, seed: int) -> list[ControlEpisode]:
        """The drawn episodes.

        Raises:
            RunError: no file fits the pattern, or there are fewer files, or episodes in one, than are asked for.
        """
        patterns = [self.data] if isinstance(self.data, str) else self.data
        names = sorted({name for pattern in patterns for name in glob(pattern, recursive=True)})
        if not names:
            raise RunError(f"no file fits tasks.data={self.data!r}: expected a pattern, such as 'kitchens/*.hdf5'")
        found = []
        for name in self._drawn(names, self.environments, seed, f"{len(names)} files fit {self.data}", "environments"):
            episodes = [self.spaces.read(episode, name) for episode in recorded.read(name)]
            has = f"{name} has {len(episodes)} episodes"
            found += self._drawn(episodes, self.demonstrations, derive(seed, name), has, "demonstrations")
        return found

    def demonstrated(self, seed: int) -> list[ControlEpisode]:
        """None: `demonstrations` counts those of the data, and there are no others."""
        return []

    @staticmethod
    def _drawn(among: Sequence[T], count: int | None, seed: int, has: str, field: str) -> list[T]:
        """So many of some, the same first ones for the same seed."""
        if count is not None and count > len(among):
            raise RunError(f"{has}, and tasks.{field}={count} asks for more")
        order = np.random.default_rng(seed).permutation(len(among))[:count]
        return [among[k] for k in order]

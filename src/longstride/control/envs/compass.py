"""Mazes with discrete actions: the force is none, or a full one in one of four directions.

What always holds: playing the actions of a walk again leads where it led. The rest is as in `pointmaze`.
"""

from collections.abc import Sequence

import numpy as np

from longstride.control.envs.base import ControlEpisode, ShortestWay, Spec, VectorStep
from longstride.control.envs.maze import Maze
from longstride.control.envs.pointmaze import Draw, PointMaze, PointMazeEnv
from longstride.core.numbers import Count

FORCES = np.array([(0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)], float)
"""Of the five actions: none, and a full one in each direction."""


class CompassEnv(PointMazeEnv):
    """A maze where the force is one of `FORCES`: that of a discrete action, or the nearest one to real numbers. A step
    takes `hold` of the maze's own."""

    def __init__(self, layout: Maze, draw: Draw, count: int, horizon: int, ends: bool, hold: int) -> None:
        super().__init__(layout, draw, count, horizon * hold, ends)
        self.hold = hold

    def step(self, action_BA: np.ndarray) -> VectorStep:
        force_B2 = FORCES[action_BA.argmax(1) if action_BA.shape[1] == len(FORCES) else nearest(action_BA)]
        steps = [super(CompassEnv, self).step(force_B2) for _ in range(self.hold)]
        return steps[-1]._replace(reward=np.sum([step.reward for step in steps], 0))


def nearest(force_B2: np.ndarray) -> np.ndarray:
    """[B] number of the nearest of `FORCES`."""
    return ((force_B2[:, None] - FORCES) ** 2).sum(-1).argmin(1)


class CompassMaze(PointMaze):
    """A maze with five discrete actions; its goals are its tasks."""

    hold: Count = 1
    """Steps of a point for which an action is held."""

    @property
    def spec(self) -> Spec:
        return Spec(observation=4, action=len(FORCES), goal=(0, 1), discrete=True)

    def world(self, layout: Maze, draw: Draw, count: int, horizon: int, ends: bool = True) -> CompassEnv:
        return CompassEnv(layout, draw, count, horizon, ends, self.hold)

    def dataset(self, seed: int) -> list[ControlEpisode]:
        return _numbered(super().dataset(seed))

    def demonstrated(self, seed: int) -> list[ControlEpisode]:
        return _numbered(super().demonstrated(seed))

    def way(self, episode: ControlEpisode) -> ShortestWay | None:
        found = super().way(episode)
        return found and found._replace(along=_rows(found.along), back=_rows(found.back))


def _numbered(episodes: Sequence[ControlEpisode]) -> list[ControlEpisode]:
    """Walks with the actions that were taken."""
    for e in episodes:
        e.action = _rows(e.action)
    return list(episodes)


def _rows(force_B2: np.ndarray) -> np.ndarray:
    """[B, 5] the nearest of `FORCES`, as rows of zeros with a one."""
    return np.eye(len(FORCES), dtype=np.float32)[nearest(force_B2)]

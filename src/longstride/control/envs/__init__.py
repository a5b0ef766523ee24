"""Control tasks: worlds with real-valued observations, and actions that are real numbers or discrete, many copies at a
time. NumPy only."""

from longstride.control.envs.base import (
    ControlEpisode,
    ControlTasks,
    OfOthers,
    ShortestWay,
    Spec,
    VectorEnv,
    play,
    play_beside,
)
from longstride.control.envs.compass import CompassMaze
from longstride.control.envs.gymnasium import GymnasiumTasks
from longstride.control.envs.pendulum import Pendulum
from longstride.control.envs.pointmaze import PointMaze
from longstride.control.envs.several import Several

__all__ = [
    "CompassMaze",
    "ControlEpisode",
    "ControlTasks",
    "GymnasiumTasks",
    "OfOthers",
    "Pendulum",
    "PointMaze",
    "Several",
    "Spec",
    "VectorEnv",
    "ShortestWay",
    "play",
    "play_beside",
]

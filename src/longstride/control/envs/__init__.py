"""Control tasks: worlds with real-valued observations and actions, many copies at a time. NumPy only."""

from longstride.control.envs.base import ControlTasks, Episode, Spec, VectorEnv, play
from longstride.control.envs.pointmaze import PointMaze

__all__ = ["ControlTasks", "Episode", "PointMaze", "Spec", "VectorEnv", "play"]

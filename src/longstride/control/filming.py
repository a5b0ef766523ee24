"""A test episode of a control run played again, and drawn by its environment as an animation (extra `plot`: Pillow).

What always holds: it is the episode that the last evaluation played: all test episodes are played, with the same starts
and the same noise, and one of them is drawn.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longstride.control.envs import ControlEpisode, GymnasiumTasks, VectorEnv, play
from longstride.control.envs.base import VectorStep
from longstride.control.envs.gymnasium import GymnasiumVectorEnv
from longstride.control.evaluation import trained_agent
from longstride.control.recipe import ControlRecipe
from longstride.core.errors import ConfigError, EnvFailure, RunError, require
from longstride.core.seeds import derive

MOST_FRAMES = 1000
"""Pictures of an animation; of longer episodes every second, third, ... step is drawn."""


def play_again(recipe: ControlRecipe, run: Path, number: int, video: Path | None = None) -> tuple[str, ControlEpisode]:
    """Plays a test episode of a run's last checkpoint again.

    Args:
        recipe: the run's.
        run: the run folder.
        number: of the episode, from 0, in the order of the test tasks.
        video: where an animation of it goes, `*.gif`; None: it is not drawn.

    Returns:
        The name of its task, and the episode.

    Raises:
        ConfigError: nothing draws these tasks, or the file is no `*.gif`.
        MissingExtra: Pillow is not installed.
        RunError: there is no such episode, or no checkpoint.
        EnvFailure: the environment draws no pictures.
    """
    tasks, horizon = recipe.tasks, recipe.test_horizon.at(1)
    if video is not None:
        if not isinstance(tasks, GymnasiumTasks) or video.suffix.lower() != ".gif":
            raise ConfigError(f"{video}: expected *.gif, of an environment of Gymnasium, which draws itself")
        require("PIL", "plot")
        tasks = tasks.replace(kwargs=tasks.kwargs | {"render_mode": "rgb_array"})
    learner, _ = trained_agent(recipe, run)
    env, names = tasks.tests(recipe.evaluation.episodes, horizon)
    if not 0 <= number < len(names):
        env.close()
        raise RunError(f"{run} has the test episodes 0 to {len(names) - 1}, not {number}")
    filmed = Filmed(env, number) if video is not None else None
    try:
        actor = learner.actor(derive(recipe.seed, "eval", "noise"), explore=False)
        episode = play(filmed or env, actor, derive(recipe.seed, "eval"))[number]
        if filmed is not None and video is not None:
            filmed.save(video, episode.length)
    finally:
        env.close()
    return names[number], episode


class Filmed(VectorEnv):
    """An environment one episode of which is drawn before each step and at the end."""

    def __init__(self, env: VectorEnv, number: int) -> None:
        assert isinstance(env, GymnasiumVectorEnv)
        self.inner, self.turns, self.frames = env, env.turns, list[Any]()
        self._turn, self._copy = divmod(number, env.count)
        self._begun = 0

    def reset(self, seed: int) -> np.ndarray:
        observation_BO = self.inner.reset(seed)
        self._begun += 1
        self.goal = self.inner.goal
        self._draw()
        return observation_BO

    def step(self, action_BA: np.ndarray) -> VectorStep:
        step = self.inner.step(action_BA)
        self._draw()
        return step

    def close(self) -> None:
        self.inner.close()

    def _draw(self) -> None:
        if self._begun != self._turn + 1:
            return
        copies: Sequence[Any] | None = getattr(self.inner.env, "envs", None)
        frame = copies[self._copy].render() if copies else self.inner.env.render()[self._copy]
        if not isinstance(frame, np.ndarray) or frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            raise EnvFailure(f"{self.inner.tasks.id} draws no picture of bytes (height, width, 3)")
        self.frames.append(frame)

    def save(self, path: Path, length: int) -> None:
        """Writes the pictures of the first `length` steps."""
        image = require("PIL.Image", "plot")
        every = -(-(length + 1) // MOST_FRAMES)
        pictures = [image.fromarray(frame) for frame in self.frames[: length + 1 : every]]
        rate = (self.inner.env.metadata or {}).get("render_fps") or 30
        pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=1000 * every / rate, loop=0)

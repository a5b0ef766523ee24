"""Minari data sets (extra `minari`): episodes read from one, and written as one.

What always holds: episodes come in their order with terminations and truncations apart; nothing is downloaded: a data
set must be in Minari's folder already (`MINARI_DATASETS_PATH`). The package is imported on first use.

Observations that are dictionaries are read by the key that they are asked for, as in the goal-conditioned sets of
D4RL: `observation`, and `desired_goal` for the goal.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from longstride.control.envs.base import Episode
from longstride.core.errors import MissingExtra, RunError


def _minari() -> Any:
    try:
        import h5py  # noqa: F401  # pyright: ignore[reportMissingImports]
        import minari  # pyright: ignore[reportMissingImports]
    except ImportError as e:
        raise MissingExtra("minari is needed for its data sets; pip install 'longstride[minari]'") from e
    return minari


def read(name: str) -> list[Episode]:
    """The episodes of a local data set, such as `maze/umaze-v0`.

    An episode that was cut off without a flag, at the end of a recording, counts as truncated.

    Raises:
        MissingExtra: the package is not installed.
        RunError: there is no such data set here, or its spaces are not boxes or dictionaries of `observation`.
    """
    minari = _minari()
    try:
        dataset = minari.load_dataset(name)
    except (FileNotFoundError, ValueError) as e:
        raise RunError(f"Minari has no data set {name!r} in its folder: {e}") from e
    return [_episode(name, e) for e in dataset.iterate_episodes()]


def _episode(name: str, e: Any) -> Episode:
    seen, goal = e.observations, None
    if isinstance(seen, dict):
        if "observation" not in seen:
            raise RunError(f"{name}: expected observations under `observation`, found {', '.join(sorted(seen))}")
        goal = np.asarray(seen["desired_goal"][0], np.float32) if "desired_goal" in seen else None
        seen = seen["observation"]
    if not isinstance(seen, np.ndarray) or not isinstance(e.actions, np.ndarray):
        raise RunError(f"{name}: expected arrays as observations and actions, got {type(seen)}, {type(e.actions)}")
    t = len(e.actions)
    return Episode(
        np.asarray(seen, np.float32).reshape(t + 1, -1),
        np.asarray(e.actions, np.float32).reshape(t, -1),
        np.asarray(e.rewards, np.float32),
        bool(e.terminations[-1]),
        goal,
    )


def write(name: str, episodes: Sequence[Episode]) -> None:
    """Makes a local data set of episodes with goals (observation dictionaries) or without (arrays).

    Raises:
        MissingExtra: the package is not installed.
        RunError: there is a data set of this name already.
    """
    minari = _minari()
    from gymnasium import spaces  # pyright: ignore[reportMissingImports]
    from minari.data_collector import EpisodeBuffer  # pyright: ignore[reportMissingImports]

    def box(array: np.ndarray, bound: float = np.inf) -> Any:
        return spaces.Box(-bound, bound, array.shape[1:], np.float32)

    first = episodes[0]
    space = box(first.observation)
    if first.goal is not None:
        space = spaces.Dict({"observation": space, "desired_goal": box(first.goal[None])})
    buffers = []
    for k, e in enumerate(episodes):
        ended = np.arange(1, e.length + 1) == e.length
        seen: Any = e.observation.astype(np.float32)
        if e.goal is not None:
            seen = {"observation": seen, "desired_goal": np.tile(e.goal.astype(np.float32), (e.length + 1, 1))}
        buffers.append(
            EpisodeBuffer(
                id=k,
                observations=seen,
                actions=e.action.astype(np.float32),  # pyright: ignore[reportArgumentType] (arrays are what it documents)
                rewards=e.reward.tolist(),
                terminations=(ended & e.terminated).tolist(),
                truncations=(ended & (not e.terminated)).tolist(),
            )
        )
    try:
        minari.create_dataset_from_buffers(
            name, buffers, observation_space=space, action_space=box(first.action, 1.0), data_format="hdf5"
        )
    except ValueError as e:
        raise RunError(f"Minari cannot write the data set {name!r}: {e}") from e

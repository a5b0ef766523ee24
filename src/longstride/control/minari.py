"""Minari data sets (extra `minari`): episodes read from one, and written as one.

What always holds: episodes keep their order, and terminations stay apart from truncations; nothing is downloaded: a
data set must already be in Minari's folder (`MINARI_DATASETS_PATH`). The package is imported on first use.

Dictionary observations are read by key, as in the goal-conditioned data sets of D4RL: `observation`, followed by
`achieved_goal` where there is one, and `desired_goal` for the goal; an episode is cut where that changes. Actions are
written and read in the environment's own units, and a discrete one is its number.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from longstride.control.envs.base import ControlEpisode
from longstride.core.errors import RunError, require


def _minari() -> Any:
    require("h5py", "minari")
    return require("minari", "minari")


def read(name: str) -> list[ControlEpisode]:
    """The episodes of a local data set, such as `maze/umaze-v0`.

    An episode that ends without a flag, where the recording stopped, counts as truncated.

    Raises:
        MissingExtra: the package is not installed.
        RunError: there is no such data set here, or its spaces are neither boxes nor dictionaries with `observation`.
    """
    minari = _minari()
    try:
        dataset = minari.load_dataset(name)
    except (FileNotFoundError, ValueError) as e:
        raise RunError(f"Minari has no data set {name!r} in its folder: {e}") from e
    try:
        episodes = [part for e in dataset.iterate_episodes() for part in _parts(name, e)]
    except (OSError, KeyError, TypeError, ValueError) as e:
        raise RunError(f"Minari's data set {name!r} is damaged: {type(e).__name__}: {e}") from e
    if not episodes:
        raise RunError(f"Minari's data set {name!r} has no episode")
    return episodes


def _parts(name: str, e: Any) -> Iterator[ControlEpisode]:
    """An episode, or its parts with one goal each."""
    observation, goal = e.observations, None
    if isinstance(observation, dict):
        if "observation" not in observation:
            found = ", ".join(sorted(observation))
            raise RunError(f"{name}: expected observations under `observation`, found {found}")
        goal = observation.get("desired_goal")
        seen = [observation[key] for key in ("observation", "achieved_goal") if key in observation]
    else:
        seen = [observation]
    if not all(isinstance(part, np.ndarray) for part in (*seen, e.actions)):
        raise RunError(
            f"{name}: expected arrays as observations and actions, got {type(seen[0])} and {type(e.actions)}"
        )
    t = len(e.actions)
    if not t:
        return
    observation = np.concatenate([np.asarray(part, np.float32).reshape(t + 1, -1) for part in seen], 1)
    action, reward = np.asarray(e.actions, np.float32).reshape(t, -1), np.asarray(e.rewards, np.float32)
    goal = None if goal is None else np.asarray(goal, np.float32).reshape(t + 1, -1)
    turns = [] if goal is None else (np.flatnonzero((goal[1:t] != goal[: t - 1]).any(1)) + 1).tolist()
    for a, b in itertools.pairwise([0, *turns, t]):
        yield ControlEpisode(
            observation[a : b + 1],
            action[a:b],
            reward[a:b],
            b == t and bool(e.terminations[-1]),
            None if goal is None else goal[a],
        )


def write(name: str, episodes: Sequence[ControlEpisode]) -> None:
    """Creates a local data set of episodes, with goals (as dictionaries) or without (as arrays). Actions of whole
    numbers are discrete, one a step.

    Raises:
        MissingExtra: the package is not installed.
        RunError: a data set of this name exists already.
    """
    minari = _minari()
    from gymnasium import spaces  # pyright: ignore[reportMissingImports]
    from minari.data_collector import EpisodeBuffer  # pyright: ignore[reportMissingImports]

    def box(array: np.ndarray, bound: float = np.inf) -> Any:
        return spaces.Box(-bound, bound, array.shape[1:], np.float32)

    first = episodes[0]
    if discrete := first.action.dtype.kind in "iu":
        actions: Any = spaces.Discrete(int(max(e.action.max() for e in episodes)) + 1)
    else:
        actions = box(first.action, max(1.0, *(float(abs(e.action).max()) for e in episodes)))
    space = box(first.observation)
    if first.goal is not None:
        space = spaces.Dict({"observation": space, "desired_goal": box(first.goal[None])})
    buffers = []
    for k, e in enumerate(episodes):
        ended = np.arange(1, e.length + 1) == e.length
        observation: Any = e.observation.astype(np.float32)
        if e.goal is not None:
            goal = np.tile(e.goal.astype(np.float32), (e.length + 1, 1))
            observation = {"observation": observation, "desired_goal": goal}
        buffers.append(
            EpisodeBuffer(
                id=k,
                observations=observation,
                actions=e.action[:, 0] if discrete else e.action.astype(np.float32),  # pyright: ignore[reportArgumentType] (arrays are what it documents)
                rewards=e.reward.tolist(),
                terminations=(ended & e.terminated).tolist(),
                truncations=(ended & (not e.terminated)).tolist(),
            )
        )
    try:
        minari.create_dataset_from_buffers(
            name, buffers, observation_space=space, action_space=actions, data_format="hdf5"
        )
    except ValueError as e:
        raise RunError(f"Minari cannot write the data set {name!r}: {e}") from e

"""Recorded episodes: data sets of others read as episodes, and episodes written for others.

| name | what it is |
|---|---|
| `minari:NAME` | a local Minari data set (`control.minari`, extra `minari`) |
| `*.hdf5`, `*.h5` | D4RL's arrays (arXiv 2004.07219; h5py, which the extra `minari` brings) |
| `*.npz` | the same arrays, or OGBench's (arXiv 2410.20092) |

D4RL's arrays have a row a step: `observations`, `actions`, `rewards`, `terminals` (the task itself ended) and
`timeouts` (the episode was cut), with `next_observations` and `infos/goal` where there are any; `terminations` and
`truncations` are other names of the two flags. OGBench's have a row an observation and no rewards: `terminals` marks
the last one of each episode, which has no action, and nothing has ended there but the walk.

What always holds: episodes keep their order, and terminations stay apart from truncations; a step whose next
observation nobody stored is left out (the last one of an episode that was cut, where there are no `next_observations`),
as in D4RL's `qlearning_dataset`; after a termination the last observation stands for the next one, which no value
reads; an episode is cut where its goal changes, and where the next row is not what `next_observations` says. Nothing is
unpickled and nothing is downloaded. What does not fit is refused in one line that names the file.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from longstride.control import minari
from longstride.control.envs.base import ControlEpisode
from longstride.core.errors import RunError, require
from longstride.core.npz import check_size, read_npz, readable

MINARI = "minari:"
"""What stands before the name of a Minari data set."""
HDF5, NPZ = (".hdf5", ".h5"), ".npz"
NAMES = {
    "observations": "observations",
    "actions": "actions",
    "rewards": "rewards",
    "terminals": "terminals",
    "terminations": "terminals",
    "timeouts": "timeouts",
    "truncations": "timeouts",
    "next_observations": "next_observations",
    "infos/goal": "goals",
    "goals": "goals",
}
"""Arrays that are read, by what files call them."""
SAME = 1e-5
"""Of 1, or of a number: what a file that rounds has between a next observation and the same one in the next row."""
EXPECTED = (
    "expected D4RL's arrays (observations, actions, rewards, terminals, and timeouts or next_observations) or "
    "OGBench's (observations, actions, terminals)"
)


def read(name: str) -> list[ControlEpisode]:
    """The episodes of a data set, as they were recorded: actions have the environment's own units, and a discrete
    action is its number.

    Raises:
        MissingExtra: the package that reads it is not installed.
        RunError: there is none of this name, or it is damaged or of a form that is not read.
    """
    if name.startswith(MINARI):
        return minari.read(name.removeprefix(MINARI))
    ending = _ending(name)
    if not Path(name).is_file():
        raise RunError(f"there is no file {name}; set tasks.data to one (*.hdf5, *.npz), or to minari:NAME")
    arrays = read_npz(name, NAMES) if ending == NPZ else _from_hdf5(name, ending)
    return episodes_of(arrays, name)


def write(name: str, episodes: Sequence[ControlEpisode]) -> None:
    """Writes episodes as a data set, D4RL's arrays with `next_observations` where it is a file; `read` gives them back.

    Raises:
        MissingExtra: the package that writes it is not installed.
        RunError: the name says no form, or a Minari data set of this name is there already.
    """
    if name.startswith(MINARI):
        return minari.write(name.removeprefix(MINARI), episodes)
    arrays, part = arrays_of(episodes), Path(f"{name}.partial")
    if _ending(name) == NPZ:
        with part.open("wb") as f:
            np.savez_compressed(f, **arrays)  # pyright: ignore[reportArgumentType] (names are arrays')
    else:
        with require("h5py", "minari").File(part, "w") as f:
            for key, array in arrays.items():
                f.create_dataset(key, data=array, compression="gzip")
    os.replace(part, name)


def arrays_of(episodes: Sequence[ControlEpisode]) -> dict[str, np.ndarray]:
    """D4RL's arrays of episodes, a row a step."""
    last_N = np.concatenate([np.arange(1, e.length + 1) == e.length for e in episodes])
    terminated_N = np.repeat([e.terminated for e in episodes], [e.length for e in episodes])
    arrays = {
        "observations": np.concatenate([e.observation[:-1] for e in episodes]),
        "rewards": np.concatenate([e.reward for e in episodes]),
        "next_observations": np.concatenate([e.observation[1:] for e in episodes]),
    }
    arrays = {key: array.astype(np.float32) for key, array in arrays.items()}
    arrays["actions"] = np.concatenate([e.action for e in episodes])
    arrays |= {"terminals": last_N & terminated_N, "timeouts": last_N & ~terminated_N}
    goals = [np.tile(e.goal, (e.length, 1)) for e in episodes if e.goal is not None]
    if goals:
        arrays["infos/goal"] = np.concatenate(goals).astype(np.float32)
    return arrays


def episodes_of(found: Mapping[str, np.ndarray], name: str) -> list[ControlEpisode]:
    """Episodes of D4RL's or OGBench's arrays, by the names in `NAMES`; others are left alone.

    Raises:
        RunError: one is missing or does not fit; `name` says whose they are.
    """
    arrays = _checked(found, name)
    ended_N = arrays["terminals"].astype(bool)
    count = len(ended_N)
    if "rewards" not in arrays and {"timeouts", "next_observations"} & set(arrays):
        raise RunError(f"{name}: expected rewards, as D4RL has them (zeros, where nothing was earned); there are none")
    if "rewards" not in arrays:  # OGBench: the last observation of an episode has a row of its own
        observation = arrays["observations"]
        return [
            ControlEpisode(observation[a : b + 1], arrays["actions"][a:b], np.zeros(b - a, np.float32), False)
            for a, b in _spans(ended_N)
            if b > a
        ]
    observation, following, goals = (arrays.get(key) for key in ("observations", "next_observations", "goals"))
    assert observation is not None
    cut_N = arrays.get("timeouts", np.zeros(count)).astype(bool)
    if following is not None:  # what follows is not what comes next, also where no flag says so
        cut_N[:-1] |= ~np.isclose(following[:-1], observation[1:], SAME, SAME).all(1)
    turns_N = np.zeros(count, bool)
    if goals is not None:
        turns_N[:-1] = (goals[1:] != goals[:-1]).any(1)
    episodes = []
    for a, b in _spans(ended_N | cut_N | turns_N):
        if following is not None:
            after = following[b : b + 1]
        elif ended_N[b]:
            after = observation[b : b + 1]
        else:  # at the end of the file there is none
            after = observation[b + 1 : b + 2 if not cut_N[b] else b + 1]
        seen = np.concatenate((observation[a : b + 1], after))
        t = len(seen) - 1
        if t:
            goal = None if goals is None else goals[a]
            steps = slice(a, a + t)
            episodes.append(
                ControlEpisode(seen, arrays["actions"][steps], arrays["rewards"][steps], bool(ended_N[b]), goal)
            )
    if not episodes:
        raise RunError(f"{name} has no step whose next observation is known")
    return episodes


def _spans(end_N: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and last row of each episode; the last row of all ends one."""
    last_E = np.flatnonzero(np.append(end_N[:-1], True))
    yield from zip([0, *(last_E[:-1] + 1).tolist()], last_E.tolist(), strict=True)


def _checked(found: Mapping[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """The arrays that are read, in two dimensions where they are of vectors: floats of single precision."""
    arrays = {NAMES[key]: array for key, array in found.items() if key in NAMES}
    missing = [key for key in ("observations", "actions", "terminals") if key not in arrays]
    if "rewards" in arrays and not missing and not {"timeouts", "next_observations"} & set(arrays):
        missing = ["timeouts (all false, where every episode ended by itself)"]
    if missing:
        has = ", ".join(sorted(found)[:12]) or "nothing"
        raise RunError(f"{name} lacks {', '.join(missing)}: {EXPECTED}, found {has}")
    rows = len(arrays["terminals"]) if arrays["terminals"].ndim else 0
    for key, array in arrays.items():
        flat = key not in ("observations", "actions", "next_observations", "goals")
        if array.dtype.kind not in "biuf":
            raise RunError(f"{name}: {key} holds no numbers but {array.dtype}")
        if not rows or len(array) != rows or (flat and array.size != rows):
            raise RunError(
                f"{name}: {key} has the shape {array.shape}; expected {rows or 'some'} rows, as in terminals"
            )
        with np.errstate(over="ignore"):
            finite = np.isfinite(array.astype(np.float32))
        if not finite.all():
            first = np.argwhere(~finite)[0, 0]
            raise RunError(
                f"{name}: {key} holds {(~finite).sum()} values that are not finite as float32, the first in row {first}"
            )
        arrays[key] = array.reshape(rows) if flat else array.reshape(rows, -1).astype(np.float32)
    if "next_observations" in arrays and arrays["next_observations"].shape != arrays["observations"].shape:
        raise RunError(f"{name}: observations and next_observations are of different sizes")
    return arrays


def _ending(name: str) -> str:
    """How the name of a file ends, as far as it is known.

    Raises:
        RunError: it is not.
    """
    ending = Path(name).suffix.lower()
    if ending not in (*HDF5, NPZ):
        raise RunError(f"{name} has no form that is known: expected *.hdf5, *.h5, *.npz or minari:NAME")
    return ending


def _from_hdf5(name: str, ending: str) -> dict[str, np.ndarray]:
    h5py = require("h5py", "minari")
    with readable(name, ending), h5py.File(name, "r") as file:
        arrays: dict[str, np.ndarray] = dict.fromkeys(file, np.zeros(0))
        for key in NAMES:
            if isinstance(found := file.get(key), h5py.Dataset):
                check_size(name, key, found.size * found.dtype.itemsize)
                arrays[key] = found[()]
        return arrays

"""Recorded episodes: D4RL's and OGBench's arrays by hand, files that give back what was written, and one line for what
is damaged or of another form."""

import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longstride.control import ControlEpisode, GymnasiumTasks, recorded
from longstride.core.errors import LongstrideWarning, RunError

FALSE = np.zeros(5, bool)


def d4rl(**other: Any) -> dict[str, np.ndarray]:
    """Five steps of a walk 0, 1, 2, .. with an action and a reward that say which step it is."""
    arrays: dict[str, Any] = {
        "observations": np.arange(5.0)[:, None],
        "actions": np.arange(5.0)[:, None] + 10,
        "rewards": np.arange(5.0) + 20,
        "terminals": FALSE,
        "timeouts": FALSE,
        **other,
    }
    return {key: array for key, array in arrays.items() if array is not None}


def at(*rows: int) -> np.ndarray:
    return np.isin(np.arange(5), rows)


def shown(episodes: list[ControlEpisode]) -> list[tuple[list[float], list[float], bool]]:
    """Observations, steps and whether it terminated."""
    for e in episodes:
        assert (e.action[:, 0] == e.reward - 10).all() or not e.reward.any()
    return [(e.observation[:, 0].tolist(), (e.action[:, 0] - 10).tolist(), e.terminated) for e in episodes]


AFTER = np.array([1.0, 2, 7, 4, 5])[:, None]


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        # no value reads what follows a termination; what follows a time limit nobody stored, so its step is left out
        (d4rl(terminals=at(1), timeouts=at(3)), [([0, 1, 1], [0, 1], True), ([2, 3], [2], False)]),
        (
            d4rl(terminals=at(1), timeouts=at(3), next_observations=AFTER),
            [([0, 1, 2], [0, 1], True), ([2, 7], [2], False), ([3, 4], [3], False), ([4, 5], [4], False)],
        ),
        # an episode ends where another observation follows than comes next, also where no flag says so
        (d4rl(next_observations=AFTER), [([0, 1, 2, 7], [0, 1, 2], False), ([3, 4, 5], [3, 4], False)]),
        (d4rl(timeouts=None, next_observations=AFTER), [([0, 1, 2, 7], [0, 1, 2], False), ([3, 4, 5], [3, 4], False)]),
        # what was rounded is the same
        (
            d4rl(next_observations=np.array([1, 2.00001, 3, 4, 5])[:, None]),
            [([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4], False)],
        ),
        # Gymnasium's names of the flags; an array that is a column
        (
            d4rl(terminals=None, timeouts=None, terminations=at(4)[:, None], truncations=FALSE),
            [([0, 1, 2, 3, 4, 4], [0, 1, 2, 3, 4], True)],
        ),
        # a new goal cuts, and its episode goes on where the old one ended
        (
            d4rl(**{"infos/goal": np.array([1, 1, 1, 2, 2])[:, None], "terminals": at(4)}),
            [([0, 1, 2, 3], [0, 1, 2], False), ([3, 4, 4], [3, 4], True)],
        ),
        # OGBench: the last observation of an episode has a row, whose action nobody took
        (
            {"observations": np.arange(5.0)[:, None], "actions": np.arange(5.0)[:, None] + 10, "terminals": at(2, 4)},
            [([0, 1, 2], [0, 1], False), ([3, 4], [3], False)],
        ),
    ],
)
def test_episodes_of_arrays_by_hand(arrays: dict[str, np.ndarray], expected: Any) -> None:
    episodes = recorded.episodes_of(arrays, "x")
    assert shown(episodes) == expected
    if "infos/goal" in arrays:
        assert [e.goal.tolist() for e in episodes if e.goal is not None] == [[1], [2]]


def recordings(goal: bool, discrete: bool) -> list[ControlEpisode]:
    rng = np.random.default_rng(0)
    return [
        ControlEpisode(
            rng.normal(size=(t + 1, 3)).astype(np.float32),
            rng.integers(4, size=(t, 1)) if discrete else rng.uniform(-2, 2, (t, 2)).astype(np.float32),
            rng.normal(size=t).astype(np.float32),
            t == 1,
            rng.normal(size=2).astype(np.float32) if goal else None,
        )
        for t in (4, 1, 2)
    ]


@pytest.mark.filterwarnings("ignore::UserWarning")  # authors and code that a local data set does not name
@pytest.mark.parametrize("name", ["a.hdf5", "a.npz", "minari:local/a-v0"])
@pytest.mark.parametrize("goal", [False, True])
@pytest.mark.parametrize("discrete", [False, True])
def test_what_was_written_is_read(
    name: str, goal: bool, discrete: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not name.endswith("npz"):
        pytest.importorskip("h5py")
        pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    episodes = recordings(goal, discrete)
    recorded.write(name, episodes)
    for a, b in zip(episodes, recorded.read(name), strict=True):
        assert a.terminated == b.terminated and (a.goal is None) == (b.goal is None)
        for field in ("observation", "action", "reward", "goal"):
            np.testing.assert_array_equal(getattr(a, field), getattr(b, field))
    assert not list(tmp_path.glob("*.partial"))


def npz(arrays: dict[str, Any]) -> Any:
    return lambda path: np.savez(path, **arrays)


def torn(path: Path) -> None:
    np.savez_compressed(path, **d4rl(observations=np.random.default_rng(0).normal(size=(5, 300))))  # pyright: ignore
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def spoilt(path: Path) -> None:
    np.savez_compressed(path, **d4rl(observations=np.random.default_rng(0).normal(size=(5, 300))))  # pyright: ignore
    content = bytearray(path.read_bytes())
    content[200] ^= 255
    path.write_bytes(content)


def swollen(path: Path) -> None:
    """An array that says it holds more than any machine."""
    np.savez(path, **d4rl(observations=None))  # pyright: ignore[reportArgumentType]
    header = np.lib.format.magic(1, 0) + (118).to_bytes(2, "little")
    said = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 1000), }"
    with zipfile.ZipFile(path, "a") as parts:
        parts.writestr("observations.npy", header + said.ljust(117).encode() + b"\n")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "there is no file"),
        (torn, r"is damaged, or no \.npz file"),
        (spoilt, r"is damaged, or no \.npz file"),
        (swollen, r"is damaged, or no \.npz file"),
        (lambda path: path.write_text("hello"), r"is damaged, or no \.npz file"),
        (npz(d4rl(observations=np.array([{}] * 5))), "Object arrays cannot be loaded"),
        (npz({"x": FALSE, "y": FALSE}), "lacks observations, actions, terminals: expected D4RL's arrays.*found x, y"),
        (npz(d4rl(timeouts=None)), r"lacks timeouts \(all false, where every episode ended by itself\)"),
        (npz(d4rl(rewards=None)), r"expected rewards, as D4RL has them \(zeros, where nothing was earned\)"),
        (npz(d4rl(rewards=np.zeros(4))), r"rewards has the shape \(4,\); expected 5 rows"),
        (npz(d4rl(terminals=np.zeros(()))), "expected some rows"),
        (npz(d4rl(actions=np.array(["a"] * 5))), "actions holds no numbers but <U1"),
        (
            npz(d4rl(rewards=np.where(at(1, 3), np.nan, 0))),
            "rewards holds 2 values that are not finite as float32, the first in row 1",
        ),
        (npz(d4rl(rewards=np.where(at(2), 1e300, 0))), "rewards holds 1 values that are not finite as float32"),
        (npz(d4rl(next_observations=np.zeros((5, 2)))), "observations and next_observations are of different sizes"),
        (npz(d4rl(timeouts=np.ones(5))), "has no step whose next observation is known"),
    ],
)
def test_files_that_do_not_fit_are_one_line(make: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    make(path)
    with pytest.raises(RunError, match=message) as found:
        recorded.read(str(path))
    assert str(path) in str(found.value) and "\n" not in str(found.value)


def test_hdf5_that_does_not_fit_is_one_line(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.hdf5"
    recorded.write(str(path), recordings(goal=True, discrete=False))
    content = path.read_bytes()
    path.write_bytes(content[:900])
    with pytest.raises(RunError, match=r"is damaged, or no \.hdf5 file"):
        recorded.read(str(path))
    with h5py.File(path, "w") as file:  # robomimic's
        file.create_dataset("data/demo_0/obs/x", data=[0.0])
    with pytest.raises(RunError, match="lacks observations, actions, terminals: .*found data"):
        recorded.read(str(path))
    with h5py.File(path, "w") as file:  # what takes no place in a file
        file.create_dataset("observations", (1 << 40, 100), "f4")
    with pytest.raises(RunError, match="observations unpacks to 439,804,651,110,400 bytes"):
        recorded.read(str(path))
    with pytest.raises(RunError, match=r"expected \*\.hdf5, \*\.h5, \*\.npz or minari:NAME"):
        recorded.read(str(tmp_path / "a.csv"))


class TestInAnEnvironment:
    """What is recorded, as the agent of an environment sees it."""

    def dataset(self, tmp_path: Path, env: str, **arrays: Any) -> list[ControlEpisode]:
        pytest.importorskip("gymnasium", reason="needs pip install 'longstride[gymnasium]'")
        path = tmp_path / "a.npz"
        np.savez(path, **d4rl(terminals=at(4), **arrays))  # pyright: ignore[reportArgumentType]
        return GymnasiumTasks(id=env, data=str(path)).dataset(0)

    def test_actions_of_a_box_are_scaled_to_one(self, tmp_path: Path) -> None:
        actions = np.array([-2, -1, 0, 2, 2.01])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            (episode,) = self.dataset(tmp_path, "Pendulum-v1", observations=np.zeros((5, 3)), actions=actions)
        assert episode.action[:, 0].tolist() == [-1, -0.5, 0, 1, 1]
        assert episode.reward.tolist() == [20, 21, 22, 23, 24] and episode.terminated

    def test_actions_far_beyond_the_box_are_warned_of(self, tmp_path: Path) -> None:
        actions = np.array([-200, -1, 0, 2, 3.0])
        said = (
            r"a\.npz: 40% of its actions lie beyond the action space of Pendulum-v1, Box.*the furthest is \[-200\.0\]"
        )
        with pytest.warns(LongstrideWarning, match=said):
            (episode,) = self.dataset(tmp_path, "Pendulum-v1", observations=np.zeros((5, 3)), actions=actions)
        assert episode.action[:, 0].tolist() == [-1, -0.5, 0, 1, 1]

    def test_numbers_of_actions_and_of_states_are_rows_with_a_one(self, tmp_path: Path) -> None:
        states, actions = np.array([0, 4, 8, 9, 13]), np.array([1, 1, 2, 3, 0])
        (episode,) = self.dataset(tmp_path, "FrozenLake-v1", observations=states, actions=actions)
        assert episode.action.argmax(1).tolist() == actions.tolist() and episode.action.sum() == 5
        assert episode.observation.argmax(1).tolist() == [*states, 13] and episode.observation.shape == (6, 16)

    def test_what_was_recorded_elsewhere_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(RunError, match=r"not recorded in Pendulum-v1.*sizes \(4, 1, 0\).*of \(3, 1, 0\)"):
            self.dataset(tmp_path, "Pendulum-v1", observations=np.zeros((5, 4)))
        with pytest.raises(
            RunError, match="not recorded in CartPole-v1, whose discrete values are whole numbers from 0 to 1: it has "
        ):
            self.dataset(tmp_path, "CartPole-v1", observations=np.zeros((5, 4)), actions=np.array([0, 1, 2, 0, 1]))

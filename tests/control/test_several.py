"""Several environments as one: each is what it is alone, and says which it is."""

from typing import Any

import numpy as np
import pytest
from aiming import Aiming

from longstride.control import Pendulum, PointMaze, Several
from longstride.control.envs import play
from longstride.core.errors import ConfigError
from longstride.core.seeds import derive

TASKS = Several(parts={"aim": Aiming(scale=2.0), "swing": Pendulum(mass=0.5)})


def half(observation_BO: np.ndarray, goal_BG: np.ndarray, first_B: np.ndarray) -> np.ndarray:
    return np.full((len(observation_BO), 1), 0.5)


def test_each_part_is_played_as_it_is_alone_with_its_place_among_them_behind() -> None:
    assert (TASKS.spec.observation, TASKS.spec.action, TASKS.spec.tasks) == (5, 1, (3, 4))
    together = play(TASKS.training(5, 6), half, seed=3)
    aim = play(TASKS.parts["aim"].training(2, 6), half, derive(3, "part", "aim"))
    swing = play(TASKS.parts["swing"].training(3, 6), half, derive(3, "part", "swing"))
    assert [e.length for e in together] == [1, 1, 6, 6, 6] and [e.terminated for e in together] == [True] * 2 + [
        False
    ] * 3
    for k, (ours, theirs) in enumerate(zip(together, aim + swing, strict=True)):
        width = theirs.observation.shape[1]
        np.testing.assert_array_equal(ours.observation[:, :width], theirs.observation)
        assert not ours.observation[:, width:3].any()
        np.testing.assert_array_equal(ours.observation[:, 3:], [[k < 2, k >= 2]] * (ours.length + 1))
        np.testing.assert_array_equal(ours.reward, theirs.reward)
        part = TASKS.parts["aim" if k < 2 else "swing"]
        assert TASKS.measures(ours) == part.measures(theirs) and ours.solved == theirs.solved


def test_tests_and_data_are_those_of_the_parts() -> None:
    env, names = TASKS.tests(2, 6)
    assert names == ["aim", "aim", "swing", "swing"] and len(env.reset(0)) == 4
    mazes = Several(parts={"u": PointMaze(maze="umaze", episodes=1, length=5), "m": PointMaze(episodes=1, length=5)})
    assert list(mazes.tests(1, 5)[1])[4:6] == ["u/umaze-5", "m/medium-1"]
    first, second = mazes.dataset(7)
    assert first.observation[0, 4:].tolist() == [1, 0] and second.observation[0, 4:].tolist() == [0, 1]
    assert mazes.training(2, 5).reset(0).shape == (2, 6)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: TASKS.training(1, 5), r"^episodes \(1\) are fewer than the 2 environments of tasks.parts; set 2"),
        (lambda: Several(parts={"a": Aiming(), "b": Aiming(discrete=True)}).spec, "parts.b does not fit beside a"),
        (lambda: Several(parts={"a": Aiming(), "b": PointMaze()}).spec, "goals of the same columns"),
        (lambda: TASKS.bounds(), "export an agent of one of them"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_a_line(call: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        call()

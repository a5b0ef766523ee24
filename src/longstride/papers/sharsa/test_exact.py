"""Order of values along shortest paths: exact values have it, and a success is carried n steps with each update."""

import numpy as np

from longstride.control import PointMaze
from longstride.control.envs.maze import maze
from longstride.papers.sharsa.exact import CellValues, TabularSarsa

FEW = CellValues(walks=PointMaze(maze="umaze", episodes=20, length=200))


def after(steps: int, updates: int, together: int = 1) -> np.ndarray:
    method = TabularSarsa(steps=steps, batch=4000 * together, updates=together)
    state = method.start(FEW, np.random.default_rng(0))
    for i in range(updates // together):
        state = method.step(FEW, state, np.random.default_rng(i))
    assert method.spent(FEW, state) == {"transitions": 4000 * updates}
    return state["values"]


def test_values_that_fall_with_the_distance_are_in_order_and_equal_ones_are_not() -> None:
    distance = maze("umaze").distance
    assert FEW.measures({"values": 0.9**distance}) == dict.fromkeys(
        ("order", "near_order", "middle_order", "far_order"), 1.0
    )
    assert FEW.measures({"values": np.zeros(distance.shape)})["order"] == 0.0
    large = CellValues(walks=PointMaze(maze="large"))
    distance = maze("large").distance
    near = large.measures({"values": np.maximum(0.9**distance, 0.9**6)})
    assert near["near_order"] == near["middle_order"] == 1.0 and near["far_order"] == 0.0 and 0 < near["order"] < 1


def test_each_update_carries_a_success_one_step_or_up_to_25() -> None:
    distance = maze("umaze").distance
    assert (after(1, 1)[distance == 0] > 0).any() and not after(1, 1)[distance > 0].any()
    for two in (after(1, 2), after(1, 2, together=2)):
        assert (two[distance == 1] > 0).any() and not two[distance > 1].any()
    assert (after(25, 1)[distance == 2] > 0).any() and not after(25, 1)[distance > 4].any()


def test_a_rate_is_how_far_a_value_goes_towards_its_targets() -> None:
    whole, half = (
        method.step(FEW, method.start(FEW, np.random.default_rng(0)), np.random.default_rng(1))["values"]
        for method in (TabularSarsa(batch=4000), TabularSarsa(batch=4000, rate=0.5))
    )
    assert whole.any() and np.allclose(half, 0.5 * whole)

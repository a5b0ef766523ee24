"""Where data are: cells by hand, of places and of leading components."""

import numpy as np
import pytest

from longstride.control.coverage import CELLS, MOST_STATES, Plane, coverage


def test_places_are_counted_in_their_own_columns_from_end_to_end() -> None:
    seen = np.array([[9, 0, 0], [9, 10, 1], [9, 10, 1], [9, 5, 1], [9, 0.4, 0]])
    found = coverage(seen, (1, 2))["coverage"]
    assert found["places"] is True and (found["low"], found["high"]) == ([0, 0], [10, 1])
    counts = np.array(found["counts"])
    assert counts.shape == (CELLS, CELLS) and counts.sum() == 5
    assert counts[0, 0] == 2 and counts[-1, -1] == 2 and counts[-1, CELLS // 2] == 1  # rows are the second direction


def test_without_places_the_plane_is_that_of_the_largest_spread_whatever_the_units() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 4000))
    small = 1e-3 * rng.normal(size=4000)
    seen = np.stack((a, a + small, 1000 * b, 1000 * b + small, small), 1)
    plane = Plane.of(seen)
    assert np.abs(plane.axes[4]).max() < 0.1  # what two columns share spreads more than the fifth alone
    assert {tuple(cell) for cell in plane.cells(seen)} <= {(i, j) for i in range(CELLS) for j in range(CELLS)}
    other = Plane.of(seen * np.array([7, 7, 0.1, 0.1, 3])).cells(seen * np.array([7, 7, 0.1, 0.1, 3]))
    assert (plane.cells(seen) == other).mean() > 0.99


@pytest.mark.parametrize("seen", [np.zeros((5, 3)), np.zeros((5, 1)), np.zeros((5, 1001))])
def test_what_has_no_plane_is_left_out(seen: np.ndarray) -> None:
    assert coverage(seen) == {}


def test_of_many_states_some_are_counted_evenly() -> None:
    count = 3 * MOST_STATES
    seen = np.stack([np.linspace(0, 1, count), np.tile([0.0, 1.0], count // 2)], 1)
    counts = np.array(coverage(seen[:-1], (0, 1))["coverage"]["counts"])
    assert counts.sum() <= MOST_STATES and np.ptp(counts.sum(0)) <= 1

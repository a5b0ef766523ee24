"""Where data are: states in the cells of a plane.

What always holds: the plane is of all observations that it was made of, and has no cell outside of them. Where two
columns are places it is theirs; otherwise it is that of the two leading principal components of the standardised
observations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CELLS = 20
"""In each direction."""
MOST_STATES, MOST_NUMBERS = 10_000, 1_000
"""States that are counted for a picture, evenly among all; of more numbers than that none are."""


@dataclass(frozen=True, slots=True)
class Plane:
    """A plane of O numbers, cut into `CELLS` by `CELLS` cells."""

    centre: np.ndarray
    """[O] what is subtracted of an observation."""
    scale: np.ndarray
    """[O] what the rest is divided by."""
    axes: np.ndarray
    """[O, 2] the two directions; [O, 1] of one number."""
    low: np.ndarray
    """[2] where cells begin in them."""
    high: np.ndarray
    """[2] where they end."""

    @classmethod
    def of(cls, seen_NO: np.ndarray, places: Sequence[int] = ()) -> "Plane":
        """The plane of some observations.

        Args:
            seen_NO: all that are to be counted.
            places: the two columns that are places; none: there are no such columns.
        """
        seen_NO = seen_NO.astype(float)
        size = seen_NO.shape[1]
        if len(places) == 2:
            centre, scale, axes = np.zeros(size), np.ones(size), np.eye(size)[:, list(places)]
        else:
            centre, spread = seen_NO.mean(0), seen_NO.std(0)
            scale = np.where(spread > 0, spread, 1.0)
            even = (seen_NO - centre) / scale
            axes = np.linalg.eigh(even.T @ even / len(even))[1][:, -2:]
        flat = (seen_NO - centre) / scale @ axes
        return cls(centre, scale, axes, flat.min(0), flat.max(0))

    def cells(self, seen_NO: np.ndarray) -> np.ndarray:
        """[N, 2] which cells observations are in; [N, 1] of one number."""
        width = np.where(self.high > self.low, self.high - self.low, 1.0)
        share = ((seen_NO - self.centre) / self.scale @ self.axes - self.low) / width
        return np.minimum((share * CELLS).astype(int), CELLS - 1)


def coverage(seen_NO: np.ndarray, places: Sequence[int] = ()) -> dict[str, Any]:
    """`{"coverage": ...}`: whether the plane is one of `places`, where it begins and ends, and how many observations
    are in each cell, a row of cells for each step of the second direction; nothing where all are in one line."""
    seen_NO = seen_NO[:: -(-len(seen_NO) // MOST_STATES)]
    if not 2 <= seen_NO.shape[1] <= MOST_NUMBERS:
        return {}
    plane = Plane.of(seen_NO, places)
    if not (plane.high > plane.low).all():
        return {}
    counts = np.zeros((CELLS, CELLS), int)
    np.add.at(counts, tuple(plane.cells(seen_NO).T[::-1]), 1)
    ends = {"low": plane.low.round(4).tolist(), "high": plane.high.round(4).tolist()}
    return {"coverage": {"places": len(places) == 2, **ends, "counts": counts.tolist()}}

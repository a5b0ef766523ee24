"""Reptile between data sources: blocks of updates on one source each, of which the weights keep a share.

What always holds: a block learns from one source alone, the same for the same seed and number of updates so far.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from longstride.core.component import Component
from longstride.core.numbers import Count, Share

S = TypeVar("S")


class Reptile(Component):
    """Updates in blocks, each on one of the sources (MOORL, arXiv 2506.09574): after a block the weights move back to
    where they were before it, but for a share of the way (Reptile, arXiv 1803.02999). What one source would undo of the
    other in a few updates is kept out, and what both agree on stays."""

    inner: Count = 5
    """K: updates of a block."""
    rate: Share = 0.5
    """eta: the share of the way that is kept; 1: all of it, and sources take turns in plain training."""

    def chosen(self, sources: Sequence[tuple[S, int]], rng: np.random.Generator) -> list[tuple[S, int]]:
        """One of the sources with all the rows, drawn by how many rows each has."""
        rows_K = np.array([count for _, count in sources])
        source, _ = sources[rng.choice(len(sources), p=rows_K / rows_K.sum())]
        return [(source, int(rows_K.sum()))]

    @torch.no_grad()
    def keep(self, weights: Sequence[Tensor], before: Sequence[Tensor]) -> None:
        """Moves weights to before + rate (weights - before)."""
        for p, was in zip(weights, before, strict=True):
            p.copy_(was.lerp(p, self.rate))

"""Drawn worlds: constants of a problem have ranges, the seed of a run draws them, and a claim says in which share of
its worlds a relation holds, and with which constant it turns.

What always holds: a world depends on its seed and its ranges alone, and all arms of a seed share it; a constant that is
added changes no other.
"""

from abc import abstractmethod
from collections.abc import Mapping
from math import log
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator

from longstride.core.component import Component
from longstride.core.numbers import Count
from longstride.core.seeds import derive
from longstride.stats import wilson_interval

THIRDS = 3
"""Parts into which worlds are divided by a constant."""


class Draw(Component):
    """Family: what a constant is drawn from."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Any:
        """A value."""


class Between(Draw):
    """Numbers between two others, evenly, or evenly in their logarithm; whole ones where both ends are."""

    low: int | float
    """The least."""
    high: int | float
    """The greatest."""
    log: bool = False
    """Whether a tenth of the range is a factor instead of a difference."""
    shape: tuple[Count, ...] = ()
    """Of a constant that is a table: tuples of so many numbers, each of them drawn."""

    @model_validator(mode="after")
    def _has_width(self) -> Self:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"a range goes up, and from above 0 for log; got {self.low} to {self.high}")
        return self

    def draw(self, rng: np.random.Generator) -> Any:
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        low, high = self.low, self.high + whole
        drawn = np.exp(rng.uniform(log(low), log(high), self.shape)) if self.log else rng.uniform(low, high, self.shape)
        return _tuples(np.floor(drawn).clip(self.low, self.high).astype(int) if whole else drawn)


class Among(Draw):
    """One of some values, each as likely."""

    values: Annotated[tuple[Any, ...], Field(min_length=2)]
    """Of any kind."""

    def draw(self, rng: np.random.Generator) -> Any:
        return self.values[int(rng.integers(len(self.values)))]


def _tuples(found: np.ndarray) -> Any:
    """Plain numbers in tuples."""
    return tuple(map(_tuples, found)) if np.ndim(found) else found.item()


def world(worlds: Mapping[str, Draw], seed: int) -> dict[str, Any]:
    """The constants that a seed draws, by dotted setting."""
    return {key: of.draw(np.random.default_rng(derive(seed, "world", key))) for key, of in worlds.items()}


def summary(drawn: Any) -> Any:
    """A constant as one number: of a table its mean; what is no number as it is."""
    return float(np.mean(drawn)) if isinstance(drawn, (int, float, tuple)) and not isinstance(drawn, bool) else drawn


def share_of_worlds(differences: np.ndarray, gap: float, drawn: Mapping[str, list[Any]]) -> dict[str, Any]:
    """In which share of worlds a difference is above its margin, and how that depends on each constant.

    Args:
        differences: of a relation, one a world.
        gap: its margin.
        drawn: by constant, its value in each world.

    Returns:
        `share` with `lo` and `hi` (Wilson, 95 %), `against` (share in which the difference has the other sign),
        `turns`: by constant its thirds, each from its least to its greatest value (`from`, `to`) with the mean
        difference and the share in which the relation holds; the constant that matters most comes first.
    """
    holds = differences > gap
    lo, hi = wilson_interval(int(holds.sum()), len(holds))
    turns = {key: _thirds(differences, holds, values) for key, values in drawn.items()}
    spread = {key: max(t["mean"] for t in of) - min(t["mean"] for t in of) for key, of in turns.items()}
    return {
        "share": float(holds.mean()),
        "lo": lo,
        "hi": hi,
        "against": float((differences < 0).mean()),
        "turns": {key: turns[key] for key in sorted(turns, key=lambda key: -spread[key])},
    }


def _thirds(differences: np.ndarray, holds: np.ndarray, values: list[Any]) -> list[dict[str, Any]]:
    """Worlds in order of a constant, in three parts; one part a value where it is no number."""
    if all(isinstance(of, (int, float)) for of in values):
        parts = np.array_split(np.argsort(values, kind="stable"), THIRDS)
    else:
        names = [str(of) for of in values]
        parts = [np.flatnonzero([of == name for of in names]) for name in dict.fromkeys(sorted(names))]
    return [
        {
            "from": values[part[0]],
            "to": values[part[-1]],
            "mean": float(differences[part].mean()),
            "share": float(holds[part].mean()),
        }
        for part in parts
        if len(part)
    ]

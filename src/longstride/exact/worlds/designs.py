"""Offline design: known functions, data that was collected far from their optimum, and normalised scores. NumPy only.

What always holds: a design is a vector x [D]; of its coordinates in a fixed orthonormal basis the first `inner` decide
its value, and the rest say how far it is from the designs that make sense, which costs `penalty` times their squared
length. So a model that was fitted to sensible designs knows nothing of the rest, and what climbs it is easily led away.
Every function is at most 0, which it is at one design.

The protocol is that of Design-Bench (arXiv 2202.08450): the data are the worst of a pool, and a value is normalised by
the least and the largest value of the whole pool, of which the largest is hidden.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from longstride.core.errors import ConfigError

FunctionName = Literal["bowl", "ackley", "valley"]


def bowl(z: np.ndarray) -> np.ndarray:
    """[N] of [N, K]: minus the mean squared distance to 0."""
    return -(z**2).mean(-1)


def ackley(z: np.ndarray) -> np.ndarray:
    """[N] of [N, K]: minus Ackley's function (1987), a funnel with ripples."""
    far, ripple = np.sqrt((z**2).mean(-1)), np.cos(2 * np.pi * z).mean(-1)
    return 20 * np.exp(-0.2 * far) + np.exp(ripple) - 20 - np.e


def valley(z: np.ndarray) -> np.ndarray:
    """[N] of [N, K]: minus the mean of |z_k+1 - z_k^2|^2 and of z^2, a bent valley after Rosenbrock (1960)."""
    return -((z[:, 1:] - z[:, :-1] ** 2) ** 2).mean(-1) - (z**2).mean(-1)


FUNCTIONS: dict[FunctionName, Callable[[np.ndarray], np.ndarray]] = {"bowl": bowl, "ackley": ackley, "valley": valley}


class OfflineData(NamedTuple):
    """What a designer is given, and the scale of its scores."""

    x: np.ndarray
    """[N, D] designs."""
    y: np.ndarray
    """[N] their values."""
    span: np.ndarray
    """[2] least and largest value of the pool."""


@dataclass(frozen=True, eq=False)
class Landscape:
    """A function of designs.

    Args:
        function: of the inner coordinates, whose best place is at `optimum`.
        dims: D.
        inner: K, how many coordinates decide the value; D: every design makes sense.
        optimum: each inner coordinate of the best design; those of the pool are standard normal.
        penalty: cost of the squared length of the other coordinates.

    Raises:
        ConfigError: more inner coordinates than there are, or fewer than two.
    """

    function: FunctionName
    dims: int
    inner: int
    optimum: float
    penalty: float

    def __post_init__(self) -> None:
        if not 2 <= self.inner <= self.dims:
            raise ConfigError(f"inner coordinates: expected 2 to {self.dims} (dims), got {self.inner}")

    @cached_property
    def basis(self) -> np.ndarray:
        """[D, D] orthonormal rows; the first K are the inner coordinates."""
        return np.linalg.qr(np.random.default_rng(0).normal(size=(self.dims, self.dims)))[0]

    def value(self, x: np.ndarray) -> np.ndarray:
        """[N] values of [N, D] designs."""
        z = x @ self.basis.T
        off = (z[:, self.inner :] ** 2).sum(-1)
        return FUNCTIONS[self.function](z[:, : self.inner] - self.optimum) - self.penalty * off

    def design(self, z: np.ndarray) -> np.ndarray:
        """[N, D] sensible designs of [N, K] inner coordinates."""
        return z @ self.basis[: self.inner]

    def draw(self, pool: int, kept: float, noise: float, rng: np.random.Generator) -> OfflineData:
        """Data: of `pool` designs the share `kept` with the lowest values.

        Args:
            pool: designs that are drawn, with standard normal inner coordinates.
            kept: in (0, 1]; 1 keeps all.
            noise: deviation of every coordinate around the sensible design.
            rng: what they are drawn with.
        """
        x = self.design(rng.normal(size=(pool, self.inner))) + noise * rng.normal(size=(pool, self.dims))
        y = self.value(x)
        worst = np.sort(np.argsort(y)[: max(1, round(kept * pool))])
        return OfflineData(x[worst], y[worst], np.array([y.min(), y.max()]))

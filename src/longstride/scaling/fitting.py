"""Fitting laws to points, with intervals by bootstrap, and predicting what was held out.

What always holds: the same points and seed give the same fit; every parameter and every prediction has an interval; a
fit names what its points cannot settle, and too few points are refused with what is missing. No torch.

The procedure: nonlinear least squares over the shapes, from the best point of a grid; for each candidate the weights
are linear least squares within their bounds (SciPy's `least_squares`, `lsq_linear`). Intervals: residuals, scaled by
sqrt(n / (n - free)), are drawn anew and fitted R times; percentiles are widened about the fit by t / z, since the
deviation is estimated too (as in `stats.bootstrap`). Where points are of runs, their residuals are made independent
first, by the correlation along a run that is likeliest (`noise`), and drawn ones get it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares, lsq_linear

from longstride.core.seeds import derive
from longstride.scaling.laws import FitError, Law, Range
from longstride.scaling.noise import Noise, noise_of
from longstride.stats.bootstrap import t_over_z

RESAMPLES = 200
GRID = 24
"""Points a shape of the grid on which a fit begins."""


class Band(NamedTuple):
    """Predictions at some x: [n] each."""

    mean: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


@dataclass(frozen=True, eq=False)
class Fit:
    """A law fitted to points."""

    law: Law
    x: np.ndarray
    """[n] or [n, inputs]."""
    y: np.ndarray
    """[n]."""
    values: dict[str, float]
    """Of the parameters, by name."""
    draws: np.ndarray
    """[R, names] fits to resampled points."""
    residuals: np.ndarray
    """[n] scaled, in units of `deviations`; independent ones, where errors are correlated."""
    correlation: float
    """Of the errors of neighbouring points of a run; 0 where points are of no run."""
    seed: int
    doubts: tuple[str, ...]
    """What the points do not settle; empty where all is well."""

    @property
    def parameters(self) -> np.ndarray:
        return np.array(list(self.values.values()))

    @property
    def r_squared(self) -> float:
        """Share of the variance of y that the law has."""
        rest = self.y - self.law(self.x, self.parameters)
        return float(1 - (rest**2).sum() / max(((self.y - self.y.mean()) ** 2).sum(), 1e-300))

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Of a parameter, within the bounds that the law sets."""
        k = self.law.names.index(name)
        lo, hi = self._spread(self.draws[:, k], self.values[name], level)
        shapes = self.law.natural(np.full((2, len(self.law.shapes)), [[-np.inf], [np.inf]])).T
        least, most = [*self.law.bounds, *shapes][k]
        return float(max(lo, least)), float(min(hi, most))

    def predict(self, x: ArrayLike, deviations: ArrayLike | None = None, level: float = 0.95) -> Band:
        """The law at other x, with a band for the curve, or for what is measured there where deviations are given.

        Args:
            x: [m] or [m, inputs].
            deviations: [m], or one for all: how uncertain a measurement there is, in the units in which those of the
                fitted points were given (1 where none were).
            level: of the band.
        """
        at = _inputs(self.law, x)
        mean, drawn = self.law(at, self.parameters), self.law(at, self.draws)
        if deviations is not None:
            noise = np.random.default_rng(derive(self.seed, "noise")).choice(self.residuals, drawn.shape)
            noise = noise * np.asarray(deviations, float)
            drawn = drawn * np.exp(noise) if self.law.logarithmic else drawn + noise
        return Band(mean, *self._spread(drawn, mean, level))

    def _spread(self, drawn: np.ndarray, centre: Any, level: float) -> tuple[Any, Any]:
        tail = 50 * (1 - level)
        lo, hi = np.percentile(drawn, [tail, 100 - tail], axis=0)
        wide = t_over_z(len(self.y) - self.law.free, level)
        return centre - wide * np.maximum(0, centre - lo), centre + wide * np.maximum(0, hi - centre)

    def as_data(self) -> dict[str, Any]:
        """All that a file keeps of it."""
        return {
            "law": self.law.as_data(),
            "values": self.values,
            "intervals": {name: list(self.interval(name)) for name in self.law.names},
            "points": len(self.y),
            "r_squared": self.r_squared,
            "correlation": self.correlation,
            "doubts": list(self.doubts),
        }


def fit(
    law: Law,
    x: ArrayLike,
    y: ArrayLike,
    deviations: ArrayLike | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    runs: ArrayLike | None = None,
) -> Fit:
    """Fits a law to points by least squares.

    Args:
        law: with what it holds fixed.
        x: [n], positive, or [n, inputs] for a law of several.
        y: [n].
        deviations: [n] standard deviations of y (of log y for a logarithmic law) up to a common factor; equal if left
            out.
        seed: of the bootstrap.
        resamples: of the points.
        runs: [n] which run a point is of, points of a run in order: their errors may be correlated. Independent if left
            out.

    Raises:
        FitError: too few points for the law (fewer different x than its free parameters and one more), or some that are
            no positive numbers.
    """
    at, measured = _inputs(law, x), np.asarray(y, float)
    _check(law, at, measured, runs)
    spread = np.ones_like(measured) if deviations is None else np.asarray(deviations, float)
    if spread.shape != measured.shape or not (np.isfinite(spread) & (spread > 0)).all():
        raise FitError(f"deviations: expected {len(measured)} positive numbers, one a point, got {spread.tolist()}")
    target = np.log(measured) if law.logarithmic else measured
    found = solve(law, at, target[None], spread)[0]
    line = _line(law, at, found)
    left = (target - line) / spread
    noise = Noise(np.arange(len(left)))
    if runs is not None:
        noise = noise_of(left, _jacobian(law, at, found) / spread[:, None], np.asarray(runs))
    scaled = noise.whitened(left) * np.sqrt(len(left) / (len(left) - law.free))
    picked = np.random.default_rng(derive(seed, "fit")).choice(scaled, (resamples, len(scaled)))
    draws = solve(law, at, line + noise.coloured(picked) * spread, spread)
    values = {name: float(v) for name, v in zip(law.names, found, strict=True)}
    return Fit(
        law,
        at,
        measured,
        values,
        draws,
        scaled,
        noise.correlation,
        seed,
        (*law.doubts(at, values), *_open(law, at, draws)),
    )


def _open(law: Law, x: np.ndarray, draws: np.ndarray) -> list[str]:
    """Shapes whose refits reach from one end of the search to the other."""
    ends = law.natural(np.array(law.search(x)).reshape(-1, 2).T)
    spread = np.percentile(draws[:, len(law.weights) :], [2.5, 97.5], axis=0)
    return [
        f"{name} may be anything from {lo:.3g} to {hi:.3g}, all that is searched: the points do not settle it"
        for name, (lo, hi), (least, most) in zip(law.shapes, ends.T, spread.T, strict=True)
        if least <= lo * 1.01 and most >= hi * 0.99
    ]


def solve(law: Law, x: np.ndarray, y_SN: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """[S, names] least squares for S sets of points at the same x; `y_SN` are logarithms for a logarithmic law."""
    lowest, highest = np.array(law.search(x)).reshape(-1, 2).T
    least, most = np.array(law.bounds).T
    free = least < most

    def columns(at: np.ndarray) -> np.ndarray:
        """[..., n, weights] for shapes at coordinates [..., shapes]."""
        return law.columns(x, law.natural(at)) / deviations[:, None]

    def weights(given: np.ndarray, y: np.ndarray) -> np.ndarray:
        found = least.copy()
        if free.any():
            rest = y - given[:, ~free] @ least[~free]
            best = np.linalg.lstsq(given[:, free], rest, rcond=-1)[0]
            if (best < least[free]).any() or (best > most[free]).any():
                best = lsq_linear(given[:, free], rest, (least[free], most[free]), method="bvls").x
            found[free] = best
        return found

    def residuals(at: np.ndarray, y: np.ndarray) -> np.ndarray:
        given = columns(at)
        return given @ weights(given, y) - y

    if not law.shapes:
        return np.array([weights(columns(lowest), y) for y in y_SN / deviations])
    axes = [np.linspace(lo, hi, GRID) for lo, hi in zip(lowest, highest, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))
    tried = columns(grid)
    inverses = np.linalg.pinv(tried)
    found = []
    for y in y_SN / deviations:
        start = grid[_nearest(tried, inverses @ y, y, law.bounds)]
        at = least_squares(residuals, start, bounds=(lowest, highest), args=(y,)).x
        found.append(np.concatenate([weights(columns(at), y), law.natural(at)]))
    return np.array(found)


def _nearest(columns_GNJ: np.ndarray, weights_GJ: np.ndarray, y: np.ndarray, bounds: Sequence[Range]) -> int:
    """Of G sets of columns the one that comes closest to y [n], given the weights of each that are best without bounds:
    these are put within bounds, and then each in turn is the best beside the others."""
    w = np.clip(weights_GJ, *np.array(bounds).T)
    for j, (lo, hi) in enumerate(bounds):
        column = columns_GNJ[..., j]
        step = np.vecdot(column, y - np.vecdot(columns_GNJ, w[:, None])) / np.maximum(np.vecdot(column, column), 1e-300)
        w[:, j] = np.clip(w[:, j] + step, lo, hi)
    left = y - np.vecdot(columns_GNJ, w[:, None])
    return int(np.vecdot(left, left).argmin())


def _line(law: Law, x: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    fitted = law(x, parameters)
    return np.log(fitted) if law.logarithmic else fitted


def _jacobian(law: Law, x: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """[n, names] derivatives of the line that is fitted, by central differences."""
    steps = 1e-5 * np.maximum(np.abs(parameters), 1e-3)
    ahead, behind = (_line(law, x, parameters + sign * np.diag(steps)) for sign in (1, -1))
    return ((ahead - behind) / (2 * steps[:, None])).T


def _inputs(law: Law, x: ArrayLike) -> np.ndarray:
    at = np.atleast_1d(np.asarray(x, float))
    want = (len(at),) if law.inputs == 1 else (len(at), law.inputs)
    if at.shape != want:
        raise FitError(f"{law.type_name()} wants x of shape {want}, got {at.shape}")
    if not (np.isfinite(at).all() and (at > 0).all()):
        raise FitError(f"{law.type_name()} wants positive x, got {at[~(at > 0)][:3].tolist()}; leave these points out")
    return at


def _check(law: Law, x: np.ndarray, y: np.ndarray, runs: ArrayLike | None) -> None:
    if runs is not None and np.shape(runs) != y.shape:
        raise FitError(f"a fit needs a run to every point, got {np.shape(runs)} runs and {y.shape} y")
    if y.shape != x.shape[:1]:
        raise FitError(f"a fit needs a y to every x, got {len(x)} x and {y.shape} y")
    if not np.isfinite(y).all() or law.logarithmic and not (y > 0).all():
        raise FitError(f"{law.type_name()} wants {'positive ' * law.logarithmic}numbers for y; leave other points out")
    low, high = law.values
    if y.size and (y.max() < low or y.min() > high):
        raise FitError(
            f"{law.type_name()} is of values from {low:g} to {high:g}, got {y.min():.4g} to {y.max():.4g}; take "
            "another law, such as power"
        )
    different = np.unique(x, axis=0)
    if len(different) <= law.free:
        at = ", ".join(f"{v:.4g}" for v in np.ravel(different)[:8]) or "none"
        raise FitError(
            f"{law.type_name()} has {law.free} free parameters and needs points at {law.free + 1} different x or more, "
            f"got {len(different)} ({at}); measure at {law.free + 1 - len(different)} more"
        )

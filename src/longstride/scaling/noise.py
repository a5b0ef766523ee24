"""Errors of measurements that are near each other in a run: what shifts a policy shifts the next measurements as well.

What always holds: points of different runs have independent errors; one point has the same variance as any other; with
no sign of a correlation errors are independent. NumPy, no torch.

The model: the error of a point is a first-order autoregression along its run and independent noise of the measurement,
so the correlation of two points of a run that are k measurements apart is share x persistence^k. Both numbers are the
best of a grid by restricted likelihood (Patterson & Thompson, 1971, "Recovery of inter-block information when block
sizes are unequal"), which, unlike the correlation of residuals, is not biased by what the fit took out of them.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

PERSISTENCE = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
SHARES = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, eq=False)
class Noise:
    """How errors hang together."""

    runs: np.ndarray
    """[n] which run a point is of; points of a run are in the order in which they were measured."""
    persistence: float = 0.0
    """Of the part that goes on, from one measurement to the next."""
    share: float = 0.0
    """Of that part in the variance."""

    @property
    def correlation(self) -> float:
        """Of the errors of two neighbouring points."""
        return self.share * self.persistence

    @cached_property
    def _factors(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each run the places of its points, and the lower Cholesky factor of their correlations."""
        found = []
        for run in np.unique(self.runs):
            at = np.flatnonzero(self.runs == run)
            order = np.arange(len(at))
            together = self.share * self.persistence ** np.abs(order[:, None] - order)
            np.fill_diagonal(together, 1.0)
            found.append((at, np.linalg.cholesky(together)))
        return found

    def whitened(self, errors: np.ndarray) -> np.ndarray:
        """[n, ...] independent numbers of which `coloured` makes these errors."""
        out = np.empty_like(errors)
        for at, factor in self._factors:
            out[at] = np.linalg.solve(factor, errors[at])
        return out

    def coloured(self, independent_RN: np.ndarray) -> np.ndarray:
        """[R, n] errors, of independent numbers of the same variance."""
        out = np.empty_like(independent_RN)
        for at, factor in self._factors:
            out[:, at] = independent_RN[:, at] @ factor.T
        return out

    def likelihood(self, errors: np.ndarray, slopes: np.ndarray) -> float:
        """Restricted log-likelihood of errors [n] that a fit left, with the variance that is best; constants are left
        out. `slopes` [n, k] are orthonormal: what small changes of the parameters do."""
        white = self.whitened(np.column_stack([errors, slopes]))
        left, taken = white[:, 0], white[:, 1:]
        gram, across = taken.T @ taken, taken.T @ left
        rest = max(left @ left - across @ np.linalg.solve(gram, across), 1e-300)
        spread = 2 * sum(np.log(np.diag(factor)).sum() for _, factor in self._factors)
        return -0.5 * float(spread + np.linalg.slogdet(gram)[1] + (len(errors) - len(gram)) * np.log(rest))


def noise_of(errors: np.ndarray, jacobian: np.ndarray, runs: np.ndarray) -> Noise:
    """The likeliest of the grid, and independence among equals.

    Args:
        errors: [n] that a fit left.
        jacobian: [n, parameters] its derivatives.
        runs: [n] see `Noise`.
    """
    directions, sizes, _ = np.linalg.svd(jacobian, full_matrices=False)
    slopes = directions[:, sizes > 1e-9 * max(sizes[0], 1e-300)]
    tried = [Noise(runs), *(Noise(runs, p, s) for p, s in product(PERSISTENCE, SHARES))]
    return max(tried, key=lambda noise: noise.likelihood(errors, slopes))

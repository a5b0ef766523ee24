"""How often the intervals of fits hold what was planted: `python -m longstride.scaling.coverage` prints it for 200
synthetic sets of each law. It should be 95 %, and is 90 to 98: a little low where few points settle a parameter. Where
the errors along a run are correlated it is 89 to 93, and 50 to 61 if the fit is not told that the points are of one run
(100 sets).

What always holds: the sets depend on their number alone.
"""

from typing import NamedTuple

import numpy as np

from longstride.scaling.fitting import fit
from longstride.scaling.laws import (
    Geometric,
    Law,
    LogSigmoid,
    MixedGeometric,
    Power,
    RisingPower,
    Sigmoid,
    SizedPower,
)


class Planted(NamedTuple):
    """Where a law is measured, its true parameters, and the deviation of a measurement."""

    law: Law
    x: np.ndarray
    parameters: tuple[float, ...]
    noise: float
    relative: bool = False
    """Whether the deviation is a share of the value."""
    persistence: float = 0.0
    """Correlation of the errors of neighbouring points; where there is one, the points are of one run."""


SIZES = np.stack(np.meshgrid([0.5, 1.5, 3.0, 7.0], np.geomspace(10, 1000, 8)), -1).reshape(-1, 2)
PLANTED = {
    "sigmoid": Planted(Sigmoid(), np.geomspace(100, 20_000, 20), (0.2, 0.61, 2542, 1.92), 0.01),
    "one run": Planted(Sigmoid(), np.arange(6, 66, 2), (0.03, 0.81, 22, 1.8), 0.008, persistence=0.8),
    "power": Planted(Power(), np.geomspace(1, 100, 12), (0.1, 0.9, 0.7), 0.02),
    "data by updates": Planted(Power(), np.geomspace(0.25, 8, 8), (500, 900, 0.7), 0.05, relative=True),
    "rising power": Planted(RisingPower(), np.geomspace(4, 64, 9), (4.6, 1.5), 0.1),
    "log sigmoid": Planted(LogSigmoid(), np.geomspace(100, 100_000, 16), (1.4, 5.5, 3000, 1.2), 0.2),
    "geometric": Planted(Geometric(), np.arange(1, 17), (0.8, 0.2), 0.01),
    "mixed geometric": Planted(MixedGeometric(), np.arange(1, 17), (1.0, 0.3, 1.5), 0.01),
    "sized power": Planted(SizedPower(), SIZES, (0.3, -0.2, -0.1, 3.0), 0.02),
}


def coverage(name: str, sets: int = 200, resamples: int = 400, told: bool = True) -> dict[str, float]:
    """The share of synthetic sets in which the interval of each fitted parameter holds the planted one, and, as
    `beyond`, the band of the curve at twice the largest x the true curve.

    Args:
        name: of `PLANTED`.
        sets: how many.
        resamples: of each.
        told: whether the fit is told which points are of one run.
    """
    law, x, parameters, noise, relative, persistence = PLANTED[name]
    runs = np.zeros(len(x)) if persistence and told else None
    truth, beyond = law(x, np.array(parameters)), x.max(0)[None] * 2
    shapes = [k for k, (lo, hi) in enumerate(law.bounds) if lo < hi] + list(range(len(law.weights), len(law.names)))
    inside = dict.fromkeys([*(law.names[k] for k in shapes), "beyond"], 0)
    for s in range(sets):
        z = noise * np.random.default_rng(s).normal(size=len(x))
        for k in range(1, len(z) if persistence else 0):
            z[k] = persistence * z[k - 1] + np.sqrt(1 - persistence**2) * z[k]
        y = truth * np.exp(z) if law.logarithmic else truth * (1 + z) if relative else truth + z
        found = fit(law, x, y, truth if relative else None, seed=s, resamples=resamples, runs=runs)
        for k in shapes:
            lo, hi = found.interval(law.names[k])
            inside[law.names[k]] += lo <= parameters[k] <= hi
        band = found.predict(beyond)
        inside["beyond"] += bool(band.lo[0] <= law(beyond, np.array(parameters))[0] <= band.hi[0])
    return {key: count / sets for key, count in inside.items()}


if __name__ == "__main__":
    for each in PLANTED:
        print(f"{each:16} " + "  ".join(f"{key} {share:.3f}" for key, share in coverage(each).items()), flush=True)

"""What recipes about scaling laws share: a law is fitted to part of what was measured, and held to the rest."""

import numpy as np
from numpy.typing import ArrayLike

from longstride.scaling import FitError, Law, fit

RESAMPLES = 100
"""Fits to resampled points, for the band."""


def forecast(
    law: Law,
    x: ArrayLike,
    y: ArrayLike,
    at: float,
    truth: float,
    relative: bool = False,
    along: bool = False,
    weighed: ArrayLike = 1.0,
) -> dict[str, float]:
    """How well a law fitted to y at x says what is measured at `at`.

    Args:
        law: what is fitted.
        x: [n] where the law may look.
        y: [n] what was measured there.
        at: where it may not.
        truth: what was measured there.
        relative: errors are shares of a value; points weigh accordingly.
        along: the points are those of one run, in order, so their errors may be correlated.
        weighed: [n] what deviations are multiplied by: the larger, the less a point counts. All alike if left out.

    Returns:
        `accuracy` (1 - the distance of the prediction from the truth, not below 0), `within` (1 where the truth lies in
        the band of 95 %) and `refused` (1 where the points do not settle the law). Too few points for the law are
        refused, and what was measured last stands for the prediction.
    """
    measured = np.asarray(y, float)
    scale = abs(truth) if relative else 1.0
    try:
        runs = np.zeros(len(measured)) if along else None
        deviations = (measured if relative else np.ones_like(measured)) * weighed
        found = fit(law, x, measured, deviations, resamples=RESAMPLES, runs=runs)
    except FitError:
        last = measured[-1] if len(measured) else 0.0
        return {"accuracy": max(0.0, 1 - abs(last - truth) / scale), "within": 0.0, "refused": 1.0}
    band = found.predict([at], deviations=scale)
    return {
        "accuracy": max(0.0, 1 - abs(float(band.mean[0]) - truth) / scale),
        "within": float(band.lo[0] <= truth <= band.hi[0]),
        "refused": float(bool(found.doubts)),
    }

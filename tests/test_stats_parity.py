# pyright: reportMissingImports=false
"""Statistics and fits beside those of rliable, SciPy and scikit-learn on the same numbers. Run with rliable 1.2.0,
SciPy 1.17.1 and scikit-learn 1.9.1."""

import numpy as np
import pytest

from longstride.scaling import Geometric, Law, MixedGeometric, Power, Sigmoid, fit
from longstride.scaling.laws import log_gamma
from longstride.stats.agreement import kappa, pair_accuracy
from longstride.stats.bootstrap import t_quantile
from longstride.stats.measures import wilson_interval
from longstride.stats.reliable import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
    stratified_interval,
)


def scores(seed: int, runs: int, tasks: int = 6) -> np.ndarray:
    """With ties."""
    return np.random.default_rng(seed).uniform(size=(runs, tasks)).round(1)


class TestRliable:
    """The intervals of both are percentiles of stratified bootstraps, which draw from different generators."""

    @pytest.fixture(autouse=True)
    def rliable(self) -> None:
        pytest.importorskip("rliable.library", reason="compares with rliable: make parity")

    @pytest.mark.parametrize("seed", range(5))
    def test_means_profiles_and_improvements_are_the_same(self, seed: int) -> None:
        from rliable import library, metrics

        x, y = scores(seed, 5), scores(seed + 10, 4)
        thresholds = np.array([0.0, 0.25, 0.5, 1.0])
        assert interquartile_mean(x) == pytest.approx(metrics.aggregate_iqm(x), abs=1e-12)
        expected = metrics.probability_of_improvement(x, y)
        assert probability_of_improvement(x, y) == pytest.approx(expected, abs=1e-12)
        profile = library.create_performance_profile({"x": x}, thresholds, reps=2)[0]["x"]
        np.testing.assert_allclose(performance_profile(x, thresholds.tolist()), profile, atol=1e-12)

    def test_intervals_are_the_same_up_to_what_is_drawn(self) -> None:
        from rliable import library, metrics

        x = scores(0, 8)
        theirs = library.get_interval_estimates(
            {"x": x}, lambda s: np.array([metrics.aggregate_iqm(s)]), reps=2000, random_state=np.random.RandomState(0)
        )[1]["x"][:, 0]
        ours = stratified_interval(interquartile_mean, x, seed=0)
        assert (ours.lo, ours.hi) == pytest.approx(tuple(theirs), abs=0.01)


RATES = np.geomspace(0.25, 16, 14)
TRIES = np.arange(1.0, 15.0)


class TestSciPy:
    @pytest.fixture(autouse=True)
    def scipy(self) -> None:
        pytest.importorskip("scipy", reason="compares with SciPy: make parity")

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize(
        ("law", "x", "planted"),
        [
            (Sigmoid(), RATES, (0.2, 0.7, 2.0, 1.9)),
            (Power(), RATES, (1.0, 3.0, 0.8)),
            (Geometric(), TRIES, (0.8, 0.25)),
            (MixedGeometric(ceiling=1.0), TRIES, (1.0, 0.4, 2.0)),
        ],
    )
    def test_least_squares_find_the_same_parameters(self, law: Law, x: np.ndarray, planted: tuple, seed: int) -> None:
        from scipy.optimize import curve_fit

        noise = 1 + 0.02 * np.random.default_rng(seed).normal(size=len(x))
        y = law(x, np.array(planted)) * noise
        free = [k for k in range(len(planted)) if k >= len(law.bounds) or law.bounds[k][0] < law.bounds[k][1]]

        def curve(x: np.ndarray, *values: float) -> np.ndarray:
            parameters = np.array(planted)
            parameters[free] = values
            return law(x, parameters)

        expected = curve_fit(curve, x, y, p0=np.array(planted)[free], xtol=1e-12, ftol=1e-12, maxfev=20_000)[0]
        assert fit(law, x, y, resamples=2).parameters[free] == pytest.approx(expected, rel=1e-4)

    def test_quantiles_shares_and_the_gamma_function_are_the_same(self) -> None:
        from scipy.special import gammaln
        from scipy.stats import binomtest, t

        for df in (1, 2, 5, 30):
            for level in (0.5, 0.95, 0.99):
                assert t_quantile(df, level) == pytest.approx(t.ppf((1 + level) / 2, df), rel=1e-9)
        for successes, n in ((0, 5), (3, 7), (50, 50)):
            expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")
            assert wilson_interval(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-12)
        z = np.geomspace(1e-3, 1e3, 50)
        np.testing.assert_allclose(log_gamma(z), gammaln(z), atol=1e-9, rtol=1e-9)


def test_agreement_and_order_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="compares with scikit-learn: make parity")
    rng = np.random.default_rng(0)
    first, second, value = rng.integers(3, size=40), rng.integers(3, size=40), rng.uniform(size=40).round(1)
    second[:20] = first[:20]
    assert kappa(first.tolist(), second.tolist()) == pytest.approx(metrics.cohen_kappa_score(first, second), abs=1e-12)
    assert pair_accuracy(value, first > 0) == pytest.approx(metrics.roc_auc_score(first > 0, value), abs=1e-12)

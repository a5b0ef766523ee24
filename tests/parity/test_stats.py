# pyright: reportMissingImports=false
"""Statistics beside those of other libraries on the same numbers. Run with rliable 1.2.0 and scikit-learn 1.9.1."""

import numpy as np
import pytest

from longstride.stats.agreement import kappa, pair_accuracy
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


def test_agreement_and_order_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="compares with scikit-learn: make parity")
    rng = np.random.default_rng(0)
    first, second, value = rng.integers(3, size=40), rng.integers(3, size=40), rng.uniform(size=40).round(1)
    second[:20] = first[:20]
    assert kappa(first.tolist(), second.tolist()) == pytest.approx(metrics.cohen_kappa_score(first, second), abs=1e-12)
    assert pair_accuracy(value, first > 0) == pytest.approx(metrics.roc_auc_score(first > 0, value), abs=1e-12)

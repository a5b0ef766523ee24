"""Scaling laws: least squares, planted parameters inside their intervals, and what is not settled is said."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from longstride.core.component import build
from longstride.scaling import (
    FitError,
    Geometric,
    Law,
    MixedGeometric,
    Power,
    RisingPower,
    Sigmoid,
    SizedPower,
    cheapest,
    fit,
    frontier,
    records,
    split,
)
from longstride.scaling.coverage import PLANTED, coverage
from longstride.scaling.noise import Noise, noise_of

UTD = ([0.25, 0.5, 1, 2, 4, 8], [3000, 1950, 1400, 1050, 880, 760])
ATTEMPTS = (range(1, 9), [0.2, 0.34, 0.46, 0.53, 0.59, 0.65, 0.68, 0.7])
RISE = [0.242, 0.151, 0.214, 0.202, 0.223, 0.268, 0.303, 0.43, 0.498, 0.633, 0.596, 0.595]
PUBLISHED = {
    "8B": (2542, 1.92, 0.610),
    "8B, 32k tokens": (11272, 1.89, 0.645),
    "Scout": (4242, 1.65, 0.710),
    "8B, batch of 2048": (10909, 1.70, 0.645),
}
"""ScaleRL's fits (arXiv 2510.13786, appendix A.13): midpoint in GPU hours, exponent, asymptote."""


@pytest.mark.parametrize(
    ("law", "x", "y", "relative", "found"),
    [
        # scipy.optimize.curve_fit 1.17.1, xtol = ftol = 1e-12
        (Sigmoid(), np.geomspace(100, 20000, 12), RISE, False, (0.20401995, 0.61724297, 2762.33, 2.3500593)),
        (Power(), *UTD, False, (633.49267, 750.10296, 0.82764043)),
        (Power(), *UTD, True, (623.61276, 764.44078, 0.81462238)),
        (Geometric(), *ATTEMPTS, False, (0.77882752, 0.25236751)),
        (MixedGeometric(), *ATTEMPTS, False, (1.0, 0.20490419, 6.9291378)),
    ],
)
def test_a_fit_is_that_of_a_search_without_bounds(
    law: Law, x: list, y: list, relative: bool, found: tuple[float, ...]
) -> None:
    assert fit(law, x, y, y if relative else None, resamples=2).parameters == pytest.approx(found, rel=1e-4)


@pytest.mark.parametrize("seed", [0, 17, 42])
def test_no_other_shape_is_better_where_points_follow_no_law_and_bounds_hold(seed: int) -> None:
    x, y = np.arange(1.0, 9), np.random.default_rng(seed).normal(size=8)

    def rest(exponent: float) -> float:
        columns = np.stack([np.ones(8), x**-exponent], 1)
        return lsq_linear(columns, y, ([0, -np.inf], [np.inf, np.inf])).cost

    found = fit(Power(), x, y, resamples=2).values["exponent"]
    assert rest(found) <= min(map(rest, np.geomspace(0.02, 8, 300))) * (1 + 1e-6)


@pytest.mark.parametrize("name", [n if n == "sigmoid" else pytest.param(n, marks=pytest.mark.slow) for n in PLANTED])
def test_planted_parameters_lie_inside_their_intervals(name: str) -> None:
    """200 sets: `python -m longstride.scaling.coverage`."""
    inside = coverage(name, sets=8, resamples=60)
    assert min(inside.values()) >= 6 / 8, inside


@pytest.mark.parametrize("model", PUBLISHED)
def test_the_first_half_of_a_published_curve_gives_its_published_asymptote(model: str) -> None:
    midpoint, exponent, asymptote = PUBLISHED[model]
    hours = np.linspace(1500, 50_000, 40)
    clean = Sigmoid()(hours, np.array([0.35, asymptote, midpoint, exponent]))
    noise = 0.005 * np.random.default_rng(0).normal(size=40)
    found = fit(Sigmoid(), hours, clean + noise, resamples=100)
    lo, hi = found.interval("asymptote")
    assert found.values["asymptote"] == pytest.approx(asymptote, abs=0.02)  # the paper's own margin
    assert lo <= asymptote <= hi and not found.doubts
    later = found.predict([100_000], deviations=1)
    assert later.lo[0] <= Sigmoid()(np.array([1e5]), np.array([0.35, asymptote, midpoint, exponent]))[0] <= later.hi[0]


def test_the_interval_of_a_chance_ends_at_1() -> None:
    x = np.arange(1.0, 9.0)
    y = 0.9 * (1 - 0.1**x) + 0.03 * np.random.default_rng(2).normal(size=8)
    lo, hi = fit(Geometric(), x, y, seed=2, resamples=100).interval("chance")
    assert 0 < lo < 0.9 < hi == 1


def test_points_before_the_midpoint_do_not_settle_the_asymptote() -> None:
    hours = np.geomspace(100, 1500, 20)
    found = fit(Sigmoid(), hours, Sigmoid()(hours, np.array([0.2, 0.61, 2542, 1.92])), resamples=2)
    assert found.doubts and "asymptote is not settled" in found.doubts[0]


@pytest.mark.parametrize(
    ("law", "x", "y", "word"),
    [
        (Power(), np.arange(1, 9), np.arange(1, 9) ** -0.1, "limit"),
        (Geometric(), np.arange(1, 9), 1 - 0.99 ** np.arange(1, 9), "ceiling"),
        (
            SizedPower(),
            [(n, x) for n in (1, 2, 3, 4) for x in (10, 100, 1000)],
            [x ** (-0.3 / (1 + 50 / n)) for n in (1, 2, 3, 4) for x in (10, 100, 1000)],
            "run larger ones",
        ),
    ],
)
def test_what_else_points_cannot_settle_is_said(law: Law, x: list, y: list, word: str) -> None:
    assert word in fit(law, x, y, resamples=2).doubts[0]


def test_a_larger_size_is_predicted_from_smaller_ones() -> None:
    planted = np.array([0.3, -0.2, -0.1, 3.0])
    sizes, amounts = np.meshgrid([0.5, 1.5, 3, 7], np.geomspace(10, 1000, 8))
    x = np.stack([sizes.ravel(), amounts.ravel()], 1)
    y = SizedPower()(x, planted) * np.exp(0.01 * np.random.default_rng(0).normal(size=len(x)))
    larger = np.array([[32.0, 1000.0]])
    band = fit(SizedPower(), x, y).predict(larger)
    truth = SizedPower()(larger, planted)
    assert band.lo <= truth <= band.hi and band.mean == pytest.approx(truth, rel=0.05)


def test_a_rising_power_is_a_line_through_logarithms() -> None:
    x, y = np.array([4.0, 8, 16, 32]), np.array([90.0, 260, 700, 2200])
    found = fit(RisingPower(), x, y, resamples=20)
    slope, height = np.polyfit(np.log(x), np.log(y), 1)
    assert found.values == pytest.approx({"log_factor": height, "exponent": slope})
    assert found.predict([64.0]).mean == pytest.approx(np.exp(height) * 64**slope)


def test_what_is_held_fixed_stays_so() -> None:
    y = 0.1 + 0.5 / (1 + (5 / np.arange(1, 20)) ** 2)
    found = fit(Sigmoid(start=0.1), np.arange(1, 20), y, resamples=5)
    assert found.values["start"] == 0.1 == found.interval("start")[0]
    assert found.values == pytest.approx({"start": 0.1, "asymptote": 0.6, "midpoint": 5, "exponent": 2}, rel=1e-4)
    assert fit(Power(limit=0), [1, 2, 4, 8], [8, 4, 2, 1], resamples=2).values["exponent"] == pytest.approx(1, rel=1e-4)


def test_weights_keep_to_their_bounds() -> None:
    assert fit(Sigmoid(), np.arange(1, 11), np.arange(1, 11) / 5, resamples=2).values["asymptote"] == 1.0
    assert fit(Power(), np.arange(1, 11), -1.0 / np.arange(1, 11), resamples=2).values["limit"] == pytest.approx(
        0, abs=1e-6
    )


class TestNoise:
    RUNS = np.repeat([0, 1], [6, 4])

    def test_what_is_whitened_is_coloured_again_and_runs_are_independent(self) -> None:
        noise, errors = Noise(self.RUNS, 0.8, 0.5), np.random.default_rng(0).normal(size=(3, 10))
        white = np.stack([noise.whitened(row) for row in errors])
        assert noise.coloured(white) == pytest.approx(errors)
        factor = noise.coloured(np.eye(10)).T
        together = factor @ factor.T
        assert together[0, :3] == pytest.approx([1, 0.5 * 0.8, 0.5 * 0.64]) and not together[:6, 6:].any()
        assert noise.correlation == pytest.approx(0.4)

    def test_the_likelihood_is_that_of_contrasts_that_the_slopes_do_not_change(self) -> None:
        rng = np.random.default_rng(1)
        slopes, errors = np.linalg.qr(rng.normal(size=(10, 2)))[0], rng.normal(size=10)
        contrasts = np.linalg.svd(slopes.T)[2][2:]  # [8, n] an orthonormal basis of what is left

        def exact(noise: Noise) -> float:
            factor = noise.coloured(np.eye(10)).T
            spread, left = contrasts @ factor @ factor.T @ contrasts.T, contrasts @ errors
            rest = left @ np.linalg.solve(spread, left)
            return float(-0.5 * (np.linalg.slogdet(spread)[1] + 8 * np.log(rest)))

        one, two = Noise(self.RUNS, 0.8, 0.5), Noise(self.RUNS)
        assert one.likelihood(errors, slopes) - two.likelihood(errors, slopes) == pytest.approx(exact(one) - exact(two))

    @pytest.mark.parametrize("persistence", [0.0, 0.9])
    def test_correlation_is_found_where_there_is_some(self, persistence: float) -> None:
        rng, runs = np.random.default_rng(2), np.repeat(range(4), 40)
        errors = Noise(runs, persistence, 1.0).coloured(rng.normal(size=(1, 160)))[0]
        assert noise_of(errors, np.ones((160, 1)), runs).correlation == pytest.approx(persistence, abs=0.16)

    def test_a_run_to_every_point(self) -> None:
        with pytest.raises(FitError, match="a run to every point"):
            fit(Power(), *UTD, runs=[0])


def test_what_size_does_is_not_settled_where_noise_hides_it_or_nothing_falls() -> None:
    x = [(n, a) for n in (1, 1.5, 2) for a in (10, 30, 100, 300, 1000)]
    amount, noise = np.log([a for _, a in x]), np.random.default_rng(0).normal(size=15)
    one_rate, anything = fit(SizedPower(), x, np.exp(-0.3 * amount + 0.6 * noise)).doubts
    assert "all sizes learn at one rate" in one_rate and "half_size may be anything from 0.01 to 200" in anything
    assert "does not fall" in fit(SizedPower(), x, np.exp(0.3 * amount)).doubts[0]


def test_the_band_of_measurements_is_wider_than_that_of_the_curve() -> None:
    found = fit(Power(), *UTD)
    curve, measured = found.predict([16]), found.predict([16], deviations=1)
    assert measured.lo[0] < curve.lo[0] < curve.mean[0] < curve.hi[0] < measured.hi[0]


def test_the_same_seed_gives_the_same_fit_and_data_keep_it() -> None:
    one, two = (fit(Power(), *UTD, seed=3).as_data() for _ in range(2))
    assert one == two and build(Law, one["law"]) == Power()
    assert one["points"] == 6 and one["r_squared"] > 0.99


@pytest.mark.parametrize(
    ("law", "x", "y", "message"),
    [
        (
            Sigmoid(),
            [1, 2, 3],
            [0.1, 0.2, 0.3],
            r"needs points at 5 different x or more, got 3 \(1, 2, 3\); measure at 2",
        ),
        (Power(), [1, 1, 2, 2], [4, 4, 2, 2], "got 2 .1, 2.; measure at 2 more"),
        (Power(), [0, 1, 2, 3], [4, 4, 2, 2], "positive x"),
        (Power(), [1, 2, 3, 4], [4, np.nan, 2, 2], "numbers for y"),
        (Power(), [1, 2, 3, 4], [4, 2], "a y to every x"),
        (SizedPower(), [1, 2, 3, 4], [4, 2, 1, 1], r"x of shape \(4, 2\)"),
    ],
)
def test_points_that_cannot_be_fitted_are_refused(law: Law, x: list, y: list, message: str) -> None:
    with pytest.raises(FitError, match=message):
        fit(law, x, y)


def test_records_are_the_points_that_beat_all_before() -> None:
    x, y = records([3, 1, 2, 4, 5], [0.2, 0.1, 0.3, 0.3, 0.4])
    assert x.tolist() == [1, 2, 5] and y.tolist() == [0.1, 0.3, 0.4]


def test_the_best_setting_at_a_budget_is_that_of_the_upper_envelope() -> None:
    x = np.geomspace(1, 1000, 15)
    curves = {
        n: (x, Sigmoid()(x, np.array([0.1, asymptote, midpoint, 1.5])))
        for n, asymptote, midpoint in ((8.0, 0.4, 5), (32.0, 0.6, 25), (128.0, 0.7, 125))
    }
    found = frontier(curves, resamples=2)
    assert [found.best(c) for c in (3, 40, 1000)] == [8, 32, 128]
    budgets = np.geomspace(1, 5000, 20)
    assert list(map(found.best, budgets)) == sorted(map(found.best, budgets))
    with pytest.raises(FitError, match="two settings"):
        frontier({8.0: (x, x)})
    with pytest.raises(FitError, match="setting 4: sigmoid has 4"):
        frontier({4.0: ([1, 2, 3], [0.1, 0.2, 0.3]), **curves})


def test_attempts_go_where_each_adds_most() -> None:
    easy, hard, dead = (fit(Geometric(), range(1, 9), c * (1 - (1 - p) ** np.arange(1, 9)), resamples=2)
                        for c, p in ((1, 0.6), (1, 0.15), (0.01, 0.5)))  # fmt: skip
    shared = split({"easy": easy, "hard": hard, "dead": dead}, 20)
    assert sum(shared.values()) == 20 and shared["hard"] > shared["easy"] > shared["dead"]
    best = max(range(21), key=lambda n: 2 - 0.4**n - 0.85 ** (20 - n))
    assert split({"easy": easy, "hard": hard}, 20)["easy"] == best
    assert split({"easy": easy, "hard": hard}, 7, {"easy": 5, "hard": 1}) == {"easy": 1, "hard": 2}
    with pytest.raises(FitError, match="the least that works is 3"):
        split({"easy": easy}, 2, {"easy": 3})


def test_dear_updates_are_done_less_often() -> None:
    data = fit(Power(), *UTD)
    many, some, few = (cheapest(data, price) for price in (0.01, 0.1, 1.0))
    assert many > some > few
    limit, factor, exponent = data.parameters
    # the derivative of (limit + factor s^-exponent) (1 + price s) is 0
    s, price = some, 0.1
    slope = -exponent * factor * s ** (-exponent - 1) * (1 + price * s) + price * (limit + factor * s**-exponent)
    assert slope == pytest.approx(0, abs=1.0)


def test_what_cannot_be_weighed_or_lies_outside_is_refused() -> None:
    x, y = np.array([1.0, 2.0, 4.0, 8.0, 16.0]), np.array([0.1, 0.2, 0.3, 0.4, 0.45])
    for deviations in ([0.0] * 5, [1.0] * 4, [1.0, np.nan, 1.0, 1.0, 1.0]):
        with pytest.raises(FitError, match="deviations: expected 5 positive numbers"):
            fit(Power(), x, y, deviations)
    with pytest.raises(ValueError, match="start is 2, above the most that success can be, 1"):
        Sigmoid(start=2.0)

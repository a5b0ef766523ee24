"""Horizons: success within a budget, distances and budgets at a share, and predictions of twice the budget, on planted
policies whose answers are known."""

import math

import numpy as np
import pytest

from longstride.scaling.horizons import Outcome, budget_for, distance_at, forecast, within
from longstride.scaling.logistic import line, logistic


def test_a_line_of_log_odds_is_recovered_and_stays_finite_where_all_were_done() -> None:
    rng = np.random.default_rng(0)
    x = rng.choice([3.0, 4.0, 5.0], size=6000)
    height, slope = line(x.tolist(), (rng.random(6000) < 1 / (1 + np.exp(4 - x))).tolist())
    assert (height, slope) == (pytest.approx(-4, abs=0.3), pytest.approx(1, abs=0.08))
    height, slope = line([3.0, 4.0, 5.0], [True] * 3)
    assert 0 < height + 4 * slope < 9


def test_logistic_coefficients_make_the_penalised_gradient_zero() -> None:
    rng = np.random.default_rng(1)
    design, done, weights = rng.normal(size=(40, 3)), rng.random(40) < 0.5, rng.random(40)
    beta = logistic(design, done, [0.0, 0.3, 2.0], weights)
    left = design.T @ (weights * (done - 1 / (1 + np.exp(-design @ beta)))) - np.array([0.0, 0.3, 2.0]) * beta
    assert left == pytest.approx(np.zeros(3), abs=1e-8)


def test_success_within_a_budget_counts_what_was_done_by_then_and_what_goes_on() -> None:
    outcomes = [Outcome(2, True), Outcome(3, False), Outcome(4, True), Outcome(4, False, cut=True)]
    found = within(outcomes, [1, 2, 3, 4])
    assert [w.success for w in found] == [0, 0.25, 0.25, 0.5]
    assert [w.under_way for w in found] == [1, 0.75, 0.5, 0.25]
    assert all(w.lo < w.success < w.hi or w.success == 0 for w in found)


def test_the_budget_for_a_share_is_the_turn_by_which_it_is_done_and_infinite_where_it_never_is() -> None:
    outcomes = [Outcome(n, True) for n in range(1, 7)] + [Outcome(9, False)] * 4
    assert budget_for(outcomes, 0.5, seed=0).value == 5
    assert budget_for(outcomes, 0.8, seed=0) == (math.inf, pytest.approx(6, abs=1), math.inf)


def test_the_distance_of_half_success_is_where_a_planted_curve_crosses_it() -> None:
    rng = np.random.default_rng(2)
    distances = rng.choice([1, 2, 4, 8, 16, 32], size=3000)
    done = rng.random(3000) < 1 / (1 + np.exp(1.5 * (np.log2(distances) - 3)))
    outcomes = [Outcome(1, bool(s), distance=float(d)) for s, d in zip(done, distances, strict=True)]
    half = distance_at(outcomes, 0.5, seed=0)
    assert half is not None and half.lo < 8 < half.hi and half.hi - half.lo < 2
    four_fifths = distance_at(outcomes, 0.8, seed=0)
    assert four_fifths is not None and four_fifths.value == pytest.approx(2 ** (3 - math.log(4) / 1.5), rel=0.1)


def test_a_distance_beyond_what_was_measured_is_said_to_be_beyond_and_unknown_distances_give_none() -> None:
    easy = [Outcome(1, True, distance=float(d)) for d in (1, 2, 4)] * 20
    found = distance_at(easy, 0.5, seed=0)
    assert found is not None and found.value == math.inf
    assert distance_at([Outcome(1, True)] * 4, 0.5, seed=0) is None


def played(rng: np.random.Generator, solve: float, fail: float, budget: int, distance: int) -> Outcome:
    """An episode that from its `distance`-th turn on is done with one chance a turn, and may fail in each."""
    for turn in range(1, budget + 1):
        if turn >= distance and rng.random() < solve:
            return Outcome(turn, True, distance=distance)
        if rng.random() < fail:
            return Outcome(turn, False, distance=distance)
    return Outcome(budget, False, cut=True, distance=distance)


@pytest.mark.parametrize("known", [True, False])
def test_predictions_of_twice_the_budget_mostly_hold_what_happens(known: bool) -> None:
    hits, widths, moves = 0, [], []
    for k in range(8):
        rng = np.random.default_rng(k)
        later = [played(rng, 0.08, 0.02, 24, int(rng.choice([1, 2, 4, 8]))) for _ in range(200)]
        if not known:
            later = [Outcome(o.length, o.success, o.cut) for o in later]
        early = [o if o.length <= 12 else Outcome(12, False, True, o.distance) for o in later]
        said, came = forecast(early, 12, seed=k), sum(o.success for o in later) / 200
        hits += said.lo <= came <= said.hi
        widths.append(said.hi - said.lo)
        moves.append(came - said.success)
    assert hits >= 6
    assert np.mean(widths) < 0.25 and np.mean(moves) > 0.12


@pytest.mark.parametrize("budget", [7, 15])
def test_what_an_odd_budget_cut_counts_as_no_failure_after_it(budget: int) -> None:
    chance = 1 - 0.5 ** (1 / budget)  # of a turn: half are done within the budget, and half of the rest within twice it
    lengths = np.ceil(np.log1p(-(np.arange(400) + 0.5) / 400) / np.log1p(-chance))
    said = forecast([Outcome(min(n, budget), n <= budget, n > budget) for n in lengths], budget, seed=0)
    assert said.success == 0.5 and said.mean == pytest.approx(0.75, abs=0.045)


def test_nothing_is_predicted_where_no_episode_was_cut() -> None:
    said = forecast([Outcome(3, True), Outcome(5, False)], 8, seed=0)
    assert said.empty and said.mean == said.lo == said.hi == 0.5

"""Martingale policy evaluation: its conditions against exact moments of the process, and the bias of the mesh."""

from typing import Literal

import numpy as np
import pytest

from longstride.exact.worlds.chains import Diffusion
from longstride.papers.martingale_evaluation.exact import MartingaleEvaluation, OrnsteinUhlenbeck

Way = Literal["loss", "orthogonality", "mean_square"]
PROCESS = OrnsteinUhlenbeck().diffusion


def expected(way: Way, steps: int, process: Diffusion = PROCESS) -> tuple[np.ndarray, np.ndarray]:
    """The matrix and the vector of a condition in expectation, by the moments of X alone."""
    dt = process.horizon / steps
    t = np.linspace(0, process.horizon, steps + 1)
    w, v, (a, q) = process.weights(t), process.variance(t), process.transition(dt)
    matrix, vector = np.zeros((2, 2)), np.zeros(2)

    def pair(i: int, j: int) -> np.ndarray:
        """E f_i f_j^T for j = i or i + 1."""
        both = 3 * v[i] ** 2 if i == j else 3 * a**2 * v[i] ** 2 + q * v[i]  # E X_i^2 X_j^2
        moments = np.array([[both, v[i]], [v[j], 1.0]])
        return np.outer(w[i], w[j]) * moments

    def with_square(i: int, j: int) -> np.ndarray:
        """E f_j X_i^2 for j = i or i + 1."""
        both = 3 * v[i] ** 2 if i == j else 3 * a**2 * v[i] ** 2 + q * v[i]
        return w[j] * np.array([both, v[i]])

    for i in range(steps):
        if way == "loss":
            k = np.arange(steps - i)
            slope, noise = (a ** (2 * k)).sum() * dt, ((1 - a ** (2 * k)) / (1 - a**2) * q).sum() * dt
            matrix += pair(i, i)
            vector += slope * with_square(i, i) + noise * w[i] * np.array([v[i], 1.0])
        elif way == "orthogonality":
            matrix += pair(i, i + 1) - pair(i, i)
            vector -= with_square(i, i) * dt
        else:
            matrix += pair(i + 1, i + 1) - pair(i, i + 1) - pair(i, i + 1).T + pair(i, i)
            vector -= (with_square(i, i + 1) - with_square(i, i)) * dt
    return matrix, vector


def limit(way: Way, steps: int, process: Diffusion = PROCESS) -> np.ndarray:
    return np.linalg.solve(*expected(way, steps, process))


@pytest.mark.parametrize("way", ["loss", "orthogonality", "mean_square"])
def test_sums_over_paths_have_the_moments_of_the_process_as_their_mean(way: Way) -> None:
    steps, n = 5, 200_000
    sums = MartingaleEvaluation(way=way, steps=steps).sums(PROCESS, PROCESS.paths(n, steps, np.random.default_rng(0)))
    for found, known in zip(sums, expected(way, steps), strict=True):
        assert found / n == pytest.approx(known, rel=0.03, abs=2e-3)


@pytest.mark.parametrize("way", ["loss", "orthogonality"])
def test_the_martingale_conditions_find_the_value_up_to_the_mesh(way: Way) -> None:
    """Rewards are taken at the left end of a step: an error of order dt, which halves with it."""
    errors = [PROCESS.error(limit(way, steps)) for steps in (50, 100, 200)]
    assert errors[0] < 0.02
    assert errors[1] / errors[0] == pytest.approx(0.5, abs=0.02) == errors[2] / errors[1]


def test_the_least_squared_temporal_difference_finds_a_function_that_is_flat_in_the_state() -> None:
    slopes = [limit("mean_square", steps)[0] for steps in (100, 200, 400)]
    assert slopes[0] == pytest.approx(0.035, abs=0.002)  # 1 is true
    assert slopes[1] / slopes[0] == pytest.approx(0.5, abs=0.03) == slopes[2] / slopes[1]
    assert PROCESS.error(limit("mean_square", 400)) > 0.6


def test_what_it_minimises_is_the_quadratic_variation() -> None:
    """At the value itself the squared difference, summed, is the variation: integral of (dJ/dx noise)^2."""
    steps = 400
    t = np.linspace(0, 1, steps + 1)
    x = PROCESS.paths(4000, steps, np.random.default_rng(1))
    value = PROCESS.features(t, x) @ PROCESS.solution
    squares = ((np.diff(value, axis=1) + x[:, :-1] ** 2 / steps) ** 2).sum(1).mean()
    p = PROCESS.weights(t)[:, 0]
    assert squares == pytest.approx(np.mean((2 * p * PROCESS.noise) ** 2 * PROCESS.variance(t)), rel=0.05)


def test_without_noise_all_three_conditions_agree() -> None:
    quiet = OrnsteinUhlenbeck(noise=0.0).diffusion
    for way in ("loss", "orthogonality", "mean_square"):
        assert quiet.error(limit(way, 200, quiet)) < 0.01


def test_the_value_is_the_mean_of_the_rewards_to_come() -> None:
    x = PROCESS.paths(20_000, 200, np.random.default_rng(2))
    total, value = (x[:, :-1] ** 2).mean(1), PROCESS.features(np.zeros(1), x[:, :1])[:, 0] @ PROCESS.solution
    high = x[:, 0] > 1
    assert total.mean() == pytest.approx(value.mean(), rel=0.03)
    assert total[high].mean() == pytest.approx(value[high].mean(), rel=0.03)
    assert PROCESS.error(PROCESS.solution) == 0 and PROCESS.error(np.zeros(2)) == 1

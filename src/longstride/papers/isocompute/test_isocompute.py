"""IsoCompute: its update is the group-relative gradient, and an iteration spends the same whatever the group."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import rows_of

from longstride.core.errors import ConfigError
from longstride.exact.sharing import Shared, Sharing, group_gradient, policy
from longstride.papers.isocompute.exact import RECIPE
from longstride.report.fits import allocate, choices_as_text, fit_runs
from longstride.scaling import Power, Sigmoid, frontier

SMALL = Sharing(problems=4, answers=3, features=3)


def test_the_update_is_the_group_relative_gradient() -> None:
    rng = np.random.default_rng(0)
    state = SMALL.begin(rng) | {"weights": rng.normal(size=(3, 3))}
    answers = np.array([[0, 1, 1, 2], [2, 2, 2, 2]])  # the second group is all right: it says nothing
    right, q = np.array([1, 2]), np.array([0, 3])
    counts = np.array([np.bincount(a, minlength=3) for a in answers])
    found = state["features"][q].T @ group_gradient(policy(state, q), counts, right)
    rewards = (answers == right[:, None]).astype(float)
    spread = rewards.std(1, keepdims=True)
    advantages = (rewards - rewards.mean(1, keepdims=True)) / np.where(spread > 0, spread, 1)

    def objective(weights: np.ndarray) -> float:
        p = policy(state | {"weights": weights}, q)
        return float((advantages * np.log(p[np.arange(2)[:, None], answers])).mean(1).sum())

    for j in product(range(3), repeat=2):
        bump = np.zeros((3, 3))
        bump[j] = 1e-6
        slope = (objective(state["weights"] + bump) - objective(state["weights"] - bump)) / 2e-6
        assert found[j] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("n", [4, 64])
def test_an_iteration_spends_the_same_whatever_the_group(n: int) -> None:
    method = Shared(rollouts=n, batch=4, budget=512)
    state = method.start(SMALL, np.random.default_rng(0))
    first = method.step(SMALL, state, np.random.default_rng(1))
    second = method.step(SMALL, first, np.random.default_rng(2))
    measured = SMALL.measures(second)
    assert measured["rollouts"] == 1024 and measured["early"] == first["success"] == SMALL.measures(first)["success"]
    assert not state["weights"].any() and second["weights"].any()


def test_the_base_policy_has_the_given_chances() -> None:
    state = SMALL.begin(np.random.default_rng(0)) | {"weights": np.zeros((3, 3))}
    p = policy(state, np.arange(4))
    assert p[np.arange(4), state["right"].astype(int)] == pytest.approx([0.3, 0.1, 0.03, 0.01])
    overlap = state["features"] @ state["features"].T
    apart = Sharing(features=0).begin(np.random.default_rng(0))["features"]
    assert overlap[np.triu_indices(4, 1)].mean() > 0.2 and (apart == np.eye(20)).all()


def test_few_rollouts_are_better_at_first_where_parameters_are_shared() -> None:
    def success(n: int) -> float:
        method = Shared(rollouts=n, budget=2048)
        state = method.start(RECIPE.problem, np.random.default_rng(0))
        for i in range(2):
            state = method.step(RECIPE.problem, state, np.random.default_rng(i))
        return float(state["success"])

    assert success(8) > success(256) + 0.05


def test_a_batch_larger_than_an_iteration_is_refused() -> None:
    with pytest.raises(ConfigError, match="more than the 4096 of an iteration"):
        RECIPE.replace(method={"rollouts": 2048})


C = np.geomspace(100, 100_000, 40)
PLANTED = {n: Sigmoid()(C, np.array([0.1, top, 60.0 * n, 1.5])) for n, top in ((4.0, 0.5), (16.0, 0.6), (64.0, 0.7))}
"""Few rollouts rise first, many end higher."""


def test_the_best_number_of_rollouts_rises_with_compute_and_the_rule_follows_the_envelope() -> None:
    found = frontier({n: (C, y) for n, y in PLANTED.items()}, resamples=10)
    steps = found.steps(C)
    assert [n for _, n in steps] == [4, 16, 64]
    rule = found.rule(C[0], C[-1], resamples=20)
    assert np.exp([rule.values["log_low"], rule.values["log_high"]]) == pytest.approx([4, 64], rel=0.35)
    at = rule.predict([200, 50_000]).mean
    assert at[0] < 8 and at[1] > 40 and steps[1][0] < rule.values["midpoint"] < 2 * steps[2][0]


def test_a_sweep_of_another_model_is_fitted_by_group_size_and_a_budget_allocated(tmp_path: Path) -> None:
    for n in (2, 8):
        train_elsewhere(
            "isocompute",
            tmp_path / "runs" / str(n),
            f"group_size={n}",
            "iterations=6",
            "evaluation.every=1",
            "evaluation.tasks=20",
            "learner.batch_samples=16",
        )
    runs = [tmp_path / "runs" / n / "run" for n in ("2", "8")]
    assert {row["steps"] for run in runs for row in rows_of(run, "train")} <= {0, 1}  # on policy
    found = fit_runs(runs, Power(), "episodes", "success", by="group_size")
    assert [group["setting"] for group in found["groups"]] == [2, 8]
    assert found["groups"][0]["points"][0][0] == 16
    chosen = allocate(found, 400)
    assert {n for _, n in chosen["frontier"]} <= {2.0, 8.0} and chosen["frontier"][0][0] == 16
    assert "best by budget: " in choices_as_text(chosen)
    assert chosen["frontier"][-1][1] == chosen["best"] and ("rule" in chosen) == (len(chosen["frontier"]) > 1)

"""Preference fine-tuning on a line: gradients by differences, and the solutions that are known in closed form."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import rows_of
from scipy.special import log_softmax

from longstride.papers.preference_tuning import recipe
from longstride.papers.preference_tuning.exact import Line, PreferenceTuning

SMALL = Line(answers=7, sharpness=2.0)
LIKELIHOOD = PreferenceTuning(negative=False, rate=1.0)
CONTRAST = PreferenceTuning(beta=0.5)


def shares_of(problem: Line, policy: np.ndarray) -> np.ndarray:
    """All pairs of a policy by their chances, as if there were infinitely many labels."""
    p = np.exp(policy)
    return p[:, None] * p * problem.preferred * 2  # either order of a pair has one label


@pytest.mark.parametrize("method", [LIKELIHOOD, CONTRAST])
def test_the_gradient_is_that_of_the_loss(method: PreferenceTuning) -> None:
    rng = np.random.default_rng(0)
    theta, shares = rng.normal(size=12), rng.dirichlet(np.ones(49)).reshape(7, 7)

    def loss(theta: np.ndarray) -> float:
        policy = SMALL.policy(theta)
        if not method.negative:
            return -float(shares.sum(1) @ policy)
        ratio = policy - SMALL.prior
        return float((shares * np.log1p(np.exp(-0.5 * (ratio[:, None] - ratio)))).sum())

    h = 1e-5
    by_differences = [(loss(theta + h * e) - loss(theta - h * e)) / (2 * h) for e in np.eye(12)]
    assert method.gradient(SMALL, theta, shares) == pytest.approx(np.array(by_differences), abs=1e-8)


@pytest.mark.parametrize("samples", [SMALL.prior, log_softmax(np.arange(7.0))])
def test_dpo_is_solved_by_the_tilted_reference_wherever_the_pairs_come_from(samples: np.ndarray) -> None:
    """Labels by a reward r (Bradley-Terry) lead to reference exp(r / beta), Rafailov et al., equation 4."""
    tilted = SMALL.prior + SMALL.sharpness * SMALL.rewards / 0.5
    theta = np.linalg.lstsq(SMALL.features, tilted - SMALL.prior, rcond=None)[0]
    assert SMALL.policy(theta) == pytest.approx(log_softmax(tilted), abs=1e-6)
    assert CONTRAST.gradient(SMALL, theta, shares_of(SMALL, samples)) == pytest.approx(np.zeros(12), abs=1e-7)


def test_likelihood_on_the_references_pairs_ends_at_its_winners_and_no_further() -> None:
    winners = np.log(shares_of(SMALL, SMALL.prior).sum(1))
    theta = np.linalg.lstsq(SMALL.features, winners - SMALL.prior, rcond=None)[0]
    assert LIKELIHOOD.gradient(SMALL, theta, shares_of(SMALL, SMALL.prior)) == pytest.approx(np.zeros(12), abs=1e-6)
    assert winners.max() <= (SMALL.prior + np.log(2)).max()  # no answer more than twice as likely as before


def test_reward_is_the_mean_over_answers() -> None:
    start = SMALL.measures({"theta": np.zeros(12)})
    assert start["reward"] == pytest.approx(float(np.exp(SMALL.prior) @ SMALL.rewards)) and start["kl"] == 0
    assert SMALL.preferred + SMALL.preferred.T == pytest.approx(np.ones((7, 7)))


def test_a_step_moves_mass_to_better_answers() -> None:
    problem, rng = Line(), np.random.default_rng(0)
    state = CONTRAST.start(problem, rng)
    before = problem.measures(state)["reward"]
    for _ in range(5):
        state = CONTRAST.step(problem, state, rng)
    assert problem.measures(state)["reward"] > 2 * before


def test_the_arms_of_a_language_model_have_equally_many_answers_whose_tasks_get_harder() -> None:
    arms: Any = recipe.CLAIM.arms
    assert len({arm.iterations * arm.episodes_per_iteration for arm in arms.values()}) == 1
    assert {arm.learner.batch_samples for arm in arms.values()} == {64}
    for side in (0, 2):
        doses = [arms[relation.split()[side]].tasks.lengths for relation in recipe.CLAIM.dose]
        assert doses == [(2, 2, 2), (3, 3, 3), (5, 5, 5)]


@pytest.mark.parametrize("settings", [[], ["loss.type=reinforce", "loss.aggregation.type=mean"]])
def test_it_trains_another_model_on_other_tasks_by_settings_alone(settings: list[str], tmp_path: Path) -> None:
    run = train_elsewhere("preference_tuning", tmp_path, *settings)
    assert any(row["grad_norm"] > 0 for row in rows_of(run, "train"))

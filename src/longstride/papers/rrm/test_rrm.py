"""RRM: which pairs the augmentation makes, what they are labelled, and that the fit is the optimum."""

import numpy as np
import pytest

from longstride.exact.judging import sigmoid
from longstride.papers.rrm.exact import Pairs, Preferences, RewardModel, augmented, features, rewards

SMALL = Preferences(size=2, pairs=300, held_out=500)


def numbered(n: int) -> Pairs:
    """Prompts all 1, so that a feature is the answer itself: 10 i for the preferred answer of prompt i, + 1 for the
    other."""
    answers = np.array([[[10.0 * i], [10.0 * i + 1]] for i in range(n)])
    return Pairs(np.ones((n, 1)), answers, np.tile([1, -1], (n, 1)))


def test_each_prompt_has_all_pairs_of_its_own_two_answers_and_four_foreign_ones() -> None:
    n = 5
    difference, label = augmented(numbered(n), np.random.default_rng(0))
    assert difference.shape == (15 * n, 2) and label.shape == (15 * n,)
    assert [(label == value).sum() for value in (1.0, 0.5)] == [9 * n, 6 * n]
    # the original pairs: 10 i - (10 i + 1), and the artefact's difference
    assert difference[:n].tolist() == [[-1.0, 2.0]] * n
    foreign = difference[n : 5 * n, 0].reshape(4, n)  # own preferred answer against those of others
    assert ((foreign % 10 == 0) | (foreign % 10 == 9)).all() and (np.abs(foreign) > 8).all()
    # the artefact of foreign ties goes with no label, and differs in four of six
    ties = difference[label == 0.5]
    assert (np.abs(ties[:, 1]) == 2).mean() == pytest.approx(4 / 6)


def test_the_fit_is_the_optimum_of_the_cross_entropy_with_soft_labels() -> None:
    method = RewardModel()
    state = method.start(SMALL, np.random.default_rng(0))
    for _ in range(8):
        state = method.step(SMALL, state, np.random.default_rng(0))
    x, label = method.data(SMALL, np.random.default_rng(int(state["seed"])))
    slope = x.T @ (sigmoid(x @ state["weights"]) - label) / len(x) + method.decay * state["weights"]
    assert slope == pytest.approx(np.zeros(5), abs=1e-8)


def test_the_artefact_goes_with_the_label_as_often_as_rho_says() -> None:
    for rho, share in ((0.8, 0.9), (0.0, 0.5)):
        drawn = SMALL.replace(rho=rho).draw(20_000, np.random.default_rng(0))
        assert (drawn.artefact[:, 0] == 1).mean() == pytest.approx(share, abs=0.01)
        quality = np.einsum("nd,nkd->nk", drawn.prompts, drawn.answers)
        assert (quality[:, 0] > quality[:, 1]).mean() > 0.7


def test_quality_itself_is_never_misled_and_the_artefact_alone_always() -> None:
    true, fooled = np.array([1.0, 0, 0, 1, 0]), np.array([0.0, 0, 0, 0, 1])
    measured = SMALL.measures({"weights": true})
    assert (measured["success"], measured["agreeing"], measured["quality"]) == (1.0, 1.0, pytest.approx(1.0))
    measured = SMALL.measures({"weights": fooled})
    assert (measured["success"], measured["agreeing"], measured["artefact"]) == (0.0, 1.0, pytest.approx(1.0, abs=0.01))


def test_rewards_are_bilinear_in_prompt_and_answer() -> None:
    x, y = np.array([[1.0, 2.0]]), np.array([[3.0, 5.0]])
    assert features(x, y, np.array([1.0])).tolist() == [[3, 5, 6, 10, 1]]
    assert rewards(np.array([1.0, 0, 0, 1, -2]), x, y, np.array([1.0])).tolist() == [11]

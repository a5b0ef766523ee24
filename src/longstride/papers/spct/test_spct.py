"""SPCT: judgements, the rejection of the cold start, the update, votes and the filter."""

import numpy as np
import pytest

from longstride.exact.judging import softmax
from longstride.papers.spct.exact import (
    Criteria,
    CriteriaTuned,
    JudgedItems,
    learned,
    pairs_and_leads,
    rejective,
    signs,
    tallied,
)

CLEAR = Criteria(kinds=2, criteria=2, answers=2, noise=0.0, bias=0.0, items=200)


def test_a_judgement_is_right_where_the_best_answer_alone_has_the_highest_score() -> None:
    scores = np.array([[[5, 4], [5, 5], [4, 5]]], float)
    made = JudgedItems(np.zeros((1, 3), int), scores)
    assert made.right(np.array([0])).tolist() == [[True, False, False]]


def test_a_judge_without_noise_scores_what_its_principle_sees() -> None:
    quality = np.array([[[1.0, -1.0], [-2.0, 0.5]]])
    made = CLEAR.judge(np.array([[40.0, 0.0]]), quality, 3, np.random.default_rng(0))
    assert made.principles.tolist() == [[0, 0, 0]]
    assert made.scores[0].tolist() == [[8, 2]] * 3  # 5.5 + 2 x, to the nearest even half
    other = CLEAR.judge(np.array([[0.0, 40.0]]), quality, 1, np.random.default_rng(0))
    assert other.scores[0].tolist() == [[4, 6]]


def test_principles_are_drawn_with_the_policys_chances() -> None:
    logits = np.log([[0.2, 0.8]])
    made = CLEAR.judge(logits, np.zeros((1, 2, 2)), 5000, np.random.default_rng(0))
    assert made.principles.mean() == pytest.approx(0.8, abs=0.02)


def test_shuffled_answers_cancel_a_liking_for_the_first_in_the_sum() -> None:
    biased, quality = CLEAR.replace(bias=1.0, noise=0.5), np.array([[[0.3, 0.3], [0.0, 0.0]]])
    made = biased.judge(np.zeros((1, 2)), quality, 4000, np.random.default_rng(0))
    first, second = made.scores[0].mean(0)
    assert (made.scores[0, :, 1] > made.scores[0, :, 0]).mean() > 0.25
    assert first - second == pytest.approx(0.6, abs=0.15)


def test_what_is_kept_of_the_cold_start_leans_towards_the_right_principle() -> None:
    p = softmax(rejective(Criteria(kinds=2, criteria=4), 2000, np.random.default_rng(0))[0])
    assert p.sum(1) == pytest.approx([1, 1]) and p.argmax(1).tolist() == [0, 1] and (p.max(1) < 0.8).all()


def test_reinforcement_raises_the_right_principle_and_the_kl_term_holds_the_reference() -> None:
    def chance(method: CriteriaTuned) -> float:
        state = method.start(CLEAR, np.random.default_rng(0))
        state |= {"logits": np.zeros((2, 2)), "reference": np.zeros((2, 2))}
        for i in range(40):
            state = method.step(CLEAR, state, np.random.default_rng(i))
        return float(softmax(state["logits"]).diagonal().mean())

    assert chance(CriteriaTuned(rate=1.0)) > 0.9 > chance(CriteriaTuned(rate=1.0, beta=2.0)) > 0.5
    assert chance(CriteriaTuned(rate=0.0)) == 0.5


def test_an_update_without_advantage_is_the_exact_gradient_of_the_kl_term() -> None:
    """Answers that are all equal: no judgement is right, so no advantage is left."""
    problem, method = CLEAR.replace(kinds=1, noise=0.0), CriteriaTuned(rate=1.0, beta=0.3)
    state = method.start(CLEAR.replace(kinds=1), np.random.default_rng(0))
    state |= {"logits": np.array([[0.7, -0.2]]), "reference": np.array([[0.1, 0.4]])}
    p, q = softmax(state["logits"])[0], softmax(state["reference"])[0]
    kl = float((p * np.log(p / q)).sum())
    expected = -0.3 * p * (np.log(p / q) - kl)

    class Equal(Criteria):
        def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            return np.zeros(n, int), np.zeros((n, 2, 2)), np.zeros(n, int)

    after = method.step(Equal(**problem.model_dump()), state, np.random.default_rng(0))
    assert (after["logits"] - state["logits"])[0] == pytest.approx(expected)


def test_the_filter_sums_the_half_that_is_likelier_right() -> None:
    """A filter that knows the right principle drops the judgements by the other one, up to half of them."""
    method, problem = CriteriaTuned(votes=16, rate=0.0), CLEAR.replace(kinds=1)
    state = method.start(problem, np.random.default_rng(0)) | {"logits": np.zeros((1, 2))}
    state["tally"] = np.zeros((2, 10, 2))
    state["tally"][0, :, 1] = state["tally"][1, :, 0] = 20
    known = problem.measures(method.solution(problem, state))["success"]
    assert problem.measures(method.replace(meta=False).solution(problem, state))["success"] + 0.05 < known
    assert known > 0.85


def test_the_filter_sees_kind_principle_and_lead() -> None:
    made = JudgedItems(np.array([[1, 0]]), np.array([[[7.0, 4.0], [5.0, 5.0]]]))
    seen = pairs_and_leads(CLEAR, np.array([1]), made)
    assert [of.tolist() for of in seen] == [[3, 2], [3, 0]]
    assert signs(CLEAR, *seen).tolist() == [[0, 0, 0, 1, 3, 1], [0, 0, 1, 0, 0, 0]]
    counted = tallied(CLEAR, np.array([1]), made, np.array([[True, False]]))
    assert counted[3, 3].tolist() == [0, 1] and counted[2, 0].tolist() == [1, 0] and counted.sum() == 2


def test_training_tells_the_filter_each_of_its_judgements_and_what_was_right_is_likelier_so() -> None:
    method = CriteriaTuned(cold=50, batch=10, group=4)
    state = method.start(CLEAR, np.random.default_rng(0))
    after = method.step(CLEAR, state, np.random.default_rng(1))
    assert state["tally"].sum() == 3 * 50 and after["tally"].sum() == 3 * 50 + 4 * 10
    sure = learned(CLEAR, after["tally"])
    assert sure.shape == (4, 10) and sure[0, 2] > sure[1, 2]  # kind 0 by its own principle, and by the other one

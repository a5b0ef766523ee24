"""GenRM: what rationales are learned from, how their verdicts are averaged; and the network of scorers."""

import numpy as np
import pytest

from longstride.exact.experiment import State
from longstride.exact.judging import Choosing, ascend, choice, network, output
from longstride.papers.genrm.exact import CLAIM, HeadVerifier, Lines, Rationales

SMALL = Lines(kinds=3, width=4, lines=2, tasks=2, candidates=3)


def certain(method: Rationales | HeadVerifier) -> State:
    """A state whose lines are seen as which kind they are, and whose network marks wrong kinds for sure."""
    problem = SMALL.replace(width=6)
    state = method.start(problem, np.random.default_rng(0))
    w1 = np.zeros((6, method.hidden))
    w1[3:, 0] = 20.0
    w2 = np.zeros(method.hidden)
    w2[0] = 80.0
    return state | {"seen": np.eye(6), "w1": w1, "b1": np.zeros(method.hidden), "w2": w2, "b2": np.array(-40.0)}


def test_a_wrong_solution_has_one_wrong_line_and_a_right_one_has_none() -> None:
    kinds, right = Lines().draw((5000,), 4, np.random.default_rng(0))
    assert ((kinds >= 20).sum(1) == 1 - right).all() and right.mean() == pytest.approx(0.2, abs=0.02)
    assert np.unique(np.argmax(kinds >= 20, axis=1)[~right], return_counts=True)[1] == pytest.approx(
        [1000] * 4, rel=0.1
    )


def test_what_marks_surely_scores_by_the_verdicts_that_followed_such_marks() -> None:
    method = Rationales(votes=2)
    state = certain(method) | {"counts": np.array([[1.0, 9.0], [4.0, 1.0], [1.0, 1.0]])}
    assert method.scores(state) == pytest.approx(np.where(state["right"], 0.9, 0.2))


def test_votes_average_to_the_expected_verdict() -> None:
    """Each of two lines is marked with probability 1/2: a quarter of rationales has no mark, a half has one."""
    method = Rationales(votes=2000)
    state = certain(method) | {"w2": np.zeros(64), "b2": np.zeros(())}
    state["counts"] = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    assert method.scores(state) == pytest.approx(np.full((2, 3), 0.25 + 0.5 * 0.5), abs=0.04)


def test_rationales_whose_verdict_does_not_fit_the_label_are_not_learned_from() -> None:
    method, kinds, right = Rationales(slip=1.0), np.array([[0, 1], [0, 4]]), np.array([True, False])
    state = method.start(SMALL, np.random.default_rng(0))
    with_all_false = method.learn(SMALL, state, kinds, right, np.random.default_rng(1))
    # of the wrong solution marks are (wrong, right): it fits; of the right one all marks say wrong: it is dropped
    assert with_all_false["counts"].tolist() == [[1, 1], [2, 1], [1, 1]]
    none = method.learn(SMALL, state, kinds[:1], right[:1], np.random.default_rng(1))
    assert none["counts"].tolist() == [[1, 1]] * 3 and none["w2"] == pytest.approx(state["w2"])


def test_learning_improves_both_verifiers_at_the_length_that_is_taught() -> None:
    problem = Lines(kinds=4, width=8, taught=2, lines=2, tasks=100)
    for method in (HeadVerifier(), Rationales()):
        state = method.start(problem, np.random.default_rng(0))
        before = problem.measures(method.solution(problem, state))
        for i in range(150):
            state = method.step(problem, state, np.random.default_rng(i))
        after = problem.measures(method.solution(problem, state))
        assert after["pair_accuracy"] > 0.95 > before["pair_accuracy"] and after["success"] > 0.9


def test_the_network_ascends_its_exact_gradient() -> None:
    rng = np.random.default_rng(0)
    state, x, slope = network(3, 5, rng), rng.normal(size=(7, 3)), rng.normal(size=7)
    state |= {"b1": rng.normal(size=5)}
    after = ascend(state, x, slope, 0.1)
    for name in ("w1", "b1", "w2", "b2"):
        for at in np.ndindex(state[name].shape):
            moved = []
            for step in (1e-6, -1e-6):
                w = state[name].copy()
                w[at] += step
                moved.append(slope @ output(state | {name: w}, x))
            g = (moved[0] - moved[1]) / 2e-6
            assert after[f"mean_{name}"][at] == pytest.approx(0.1 * g, abs=1e-7)
            # the first step of Adam is as long as its rate
            assert after[name][at] - state[name][at] == pytest.approx(0.1 * np.sign(g), rel=1e-4)


def test_of_equal_scores_each_is_as_likely() -> None:
    assert choice(np.array([[0.5, 0.5, 0.1], [0.9, 0.2, 0.3]]), np.array([[1, 0, 1], [0, 1, 1]])) == 0.25
    measured = Choosing.measures(SMALL, {"scores": np.array([[0.9, 0.1]]), "right": np.array([[True, False]])})
    assert measured == pytest.approx({"success": 1.0, "pair_accuracy": 1.0, "calibration_error": 0.1})


def test_arms_differ_in_what_reads() -> None:
    assert CLAIM.changes("votes_1") == {"method.votes": 1}

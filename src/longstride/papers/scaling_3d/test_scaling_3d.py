"""3D scaling: each axis comes to its bound, as computed, and what is spent is counted."""

import numpy as np
import pytest

from longstride.papers.scaling_3d.exact import THREE, TWO, Doubtful, Mixed, answers, votes


def solved(problem: Doubtful, method: Mixed, chance: float) -> float:
    found = method.replace(tasks=20_000).answered(problem, chance, np.random.default_rng(0))
    return float((found == 0).mean())


def test_an_answer_is_that_of_the_first_wrong_step_and_most_thoughts_decide() -> None:
    steps = np.array([[[0, 0], [0, 2], [3, 2], [0, 3]], [[0, 0], [0, 0], [1, 0], [1, 1]]])
    found = answers(steps)
    assert found.tolist() == [[0, 2, 3, 3], [0, 0, 1, 1]]
    assert votes(found, 3).tolist() == [3, 0]


def test_a_longer_thought_comes_to_what_it_is_not_blind_to() -> None:
    # one step; every look redoes a wrong one that is not blind with chance 0.5
    problem, q = Doubtful(length=1, see=0.5, blind=0.4), 0.3
    after_2 = q + (1 - q) * 0.6 * 0.5 * q
    assert solved(problem, Mixed(looks=2, thoughts=1, turns=1), q) == pytest.approx(after_2, abs=0.01)
    bound = q / (q + (1 - q) * 0.4)
    assert solved(problem, Mixed(looks=40, thoughts=1, turns=1), q) == pytest.approx(bound, abs=0.01)


def test_a_turn_sees_afresh_and_doubts_what_is_right() -> None:
    problem, q = Doubtful(length=1, see=0.5, blind=0.4, doubt=0.2), 0.3
    two = q * (0.8 + 0.2 * q) + (1 - q) * 0.6 * 0.5 * q
    assert solved(problem, Mixed(looks=1, thoughts=1, turns=2), q) == pytest.approx(two, abs=0.01)


def test_a_vote_finds_the_likeliest_answer_right_or_not() -> None:
    problem = Doubtful(length=1, wrong=(0.5, 0.3, 0.2))
    many = Mixed(looks=1, thoughts=200, turns=1, tasks=200)
    assert (many.answered(problem, 0.6, np.random.default_rng(0)) == 0).mean() == 1
    assert (many.answered(problem, 0.2, np.random.default_rng(0)) == 1).mean() > 0.95


def test_all_mixes_spend_as_many_looks() -> None:
    assert Mixed(looks=3, thoughts=2, turns=4).looked == 2 * (3 * 4 + 3)
    looked = [Mixed(looks=looks, thoughts=thoughts, turns=turns).looked for looks, thoughts, turns in THREE + TWO]
    assert max(looked) < 1.04 * min(looked)
    assert all(min(mix) > 1 for mix in THREE) and all(sum(n > 1 for n in mix) == 2 for mix in TWO)

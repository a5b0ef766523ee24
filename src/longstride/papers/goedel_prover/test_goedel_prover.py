"""Goedel-Prover-V2: attempts succeed as often as computed, and the trained weights follow the exact gradient."""

import numpy as np
import pytest

from longstride.papers.goedel_prover.exact import Conjectures, Proving, Sharpening, Theorems, chances


def proved(method: Proving, chance: float, length: int, honest: float = 1.0) -> float:
    won = method.replace(tasks=100_000).proved(chance, length, np.random.default_rng(0), honest)
    return float(won.mean())


def test_told_the_first_wrong_step_an_attempt_has_the_rest_to_get_right() -> None:
    # first wrong step k = 0, 1, 2: 3 - k steps are left
    p = 0.6
    told = p**3 + sum(p**k * (1 - p) * p ** (3 - k) for k in range(3))
    assert proved(Proving(attempts=2), p, 3) == pytest.approx(told, abs=0.006)
    blind = 1 - (1 - p**3) ** 2
    assert proved(Proving(attempts=2, told="nothing"), p, 3) == pytest.approx(blind, abs=0.006)
    # any step: what is kept has to be right
    wrong = sum(p ** (3 - j) * p**j * (1 - p ** (3 - j)) for j in range(3)) / 3
    assert proved(Proving(attempts=2), p, 3, honest=0.0) == pytest.approx(p**3 + wrong, abs=0.006)


def test_without_a_word_chains_are_all_the_same_and_one_attempt_each_leaves_nothing_to_tell() -> None:
    blind = [proved(Proving(told="nothing", chains=chains), 0.6, 3) for chains in (1, 3, 12)]
    assert blind == pytest.approx([1 - (1 - 0.6**3) ** 12] * 3, abs=0.006)
    alone = Proving(chains=12)
    assert proved(alone, 0.6, 3) == proved(alone.replace(told="nothing"), 0.6, 3)


def test_no_blind_way_to_keep_steps_is_better_than_to_keep_none() -> None:
    p, length = 0.7, 6
    # kept j steps are right in a failed attempt with chance (p^j - p^length), and the rest comes out right
    gains = [(p**j - p**length) * p ** (length - j) for j in range(length)]
    assert gains == sorted(gains, reverse=True)


def test_weights_move_along_the_gradient_of_success_at_training_tasks() -> None:
    problem = Conjectures(tasks=4, answers=3, features=2)
    method = Sharpening(lr=0.5, steps=1)
    state = method.start(problem, np.random.default_rng(0))

    def success(weights: np.ndarray) -> float:
        policy = chances(state["features"][:4], weights)
        return float(policy[np.arange(4), state["right"][:4]].mean())

    moved = method.step(problem, state, np.random.default_rng(0))["weights"] - state["weights"]
    for f, unit in enumerate(np.eye(2) * 1e-5):
        slope = (success(state["weights"] + unit) - success(state["weights"] - unit)) / 2e-5
        assert moved[f] == pytest.approx(0.5 * slope, rel=1e-5)


def test_an_average_with_the_start_lies_between_and_finds_more_in_many_attempts() -> None:
    problem = Conjectures(tasks=50)
    state = Sharpening().start(problem, np.random.default_rng(0))
    for _ in range(5):
        state = Sharpening().step(problem, state, np.random.default_rng(0))
    found = {a: problem.measures(Sharpening(share=a).solution(problem, state)) for a in (0.0, 0.8, 1.0)}
    assert found[0.0]["success"] > found[0.8]["success"] > found[1.0]["success"]
    assert found[1.0]["pass_1"] > found[0.0]["pass_1"]
    weights = Sharpening(share=0.8).solution(problem, state)["weights"]
    assert weights == pytest.approx(0.2 * state["start"] + 0.8 * state["weights"])


def test_success_is_the_mean_over_levels() -> None:
    problem = Theorems(levels=(0.1, 0.5))
    found = problem.measures({"won": np.array([1.0, 3.0]), "played": np.array(4)})
    assert found == {"success": 0.5, "success_1": 0.25, "success_2": 0.75}

"""SCoRe's collapse: exact gain of second attempts, and what each stage trains."""

import numpy as np
import pytest

from longstride.papers.score.exact import CLAIM, RECIPE, TwoAttempts

PROBLEM = TwoAttempts(tasks=2)


def test_gain_and_first_attempts_are_those_of_sampled_episodes_at_the_start() -> None:
    logits = PROBLEM.begin(np.random.default_rng(0))
    logits[:2, 0] = np.log([PROBLEM.first, 1 - PROBLEM.first])
    played = PROBLEM.play(logits, np.arange(2).repeat(4000), 2, np.random.default_rng(1))
    measured = PROBLEM.measures({"logits": logits})
    assert np.mean([t.turns[0].reward for t in played]) == pytest.approx(measured["trained"], abs=0.03)
    assert np.mean([t.reward for t in played]) == pytest.approx(measured["success"], abs=0.03)
    assert PROBLEM.expect(logits, 2)[0] == pytest.approx(measured["success"])


def test_to_keep_everything_gains_nothing() -> None:
    logits = np.zeros((10, 1, 2))
    logits[-2:, 0, 0] = 50
    assert RECIPE.problem.measures({"logits": logits})["gain"] == pytest.approx(0)


def test_the_first_stage_trains_second_attempts_and_the_second_stage_both() -> None:
    method, state = RECIPE.method.replace(after=1), RECIPE.method.start(RECIPE.problem, np.random.default_rng(0))
    first = method.step(RECIPE.problem, state, np.random.default_rng(0))
    moved = np.abs(first["logits"] - state["logits"]).max((1, 2))
    assert (moved[:-2] == 0).all() and (moved[-2:] > 0).all()
    second = method.step(RECIPE.problem, first, np.random.default_rng(1))
    assert (np.abs(second["logits"] - first["logits"]).max((1, 2))[:-2] > 0).any()


def test_trained_together_first_attempts_are_learned_and_second_ones_gain_less() -> None:
    after = {}
    for name in ("two_stages", "neither"):
        method, state = CLAIM.arms[name].method, RECIPE.method.start(RECIPE.problem, np.random.default_rng(0))  # type: ignore[attr-defined]
        for i in range(60):
            state = method.step(RECIPE.problem, state, np.random.default_rng(i))
        after[name] = RECIPE.problem.measures(state)
    assert after["neither"]["trained"] > 0.8 > after["two_stages"]["trained"]
    assert after["two_stages"]["gain"] > after["neither"]["gain"]

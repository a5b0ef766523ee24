"""Verifier-based and verifier-free: exact rewards, what each is given, and what each makes of it."""

from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import rows_of

from longstride.papers.vb_vf.exact import ClonedTraces, Styles, Verified
from longstride.papers.vb_vf.recipe import CLAIM
from longstride.run.recipe import Recipe

TWO = Styles(kinds=1, speeds=(0.5, 0.1), needed=2, budgets=(3, 8))


def test_the_chance_to_have_the_answer_and_the_reward_by_hand() -> None:
    """Two steps of chance 1/2: there after 2, 3 tokens with 1/4, 1/2."""
    found = TWO.in_time(np.array([0.5]))[:, 0]
    assert found[:4] == pytest.approx([0, 1 / 4, 1 / 2, 11 / 16])
    assert TWO.rewards(np.array([0.5]))[0] == pytest.approx([1 / 4])  # of three tokens one is left with 1/4


def test_the_exact_reward_is_the_mean_of_sampled_times() -> None:
    took = 2 + np.random.default_rng(0).negative_binomial(2, 0.1, size=200_000)
    assert TWO.rewards(np.array([0.1]))[1] == pytest.approx([np.maximum(8 - took, 0).mean()], abs=0.01)


def learned(method: ClonedTraces | Verified, steps: int = 20) -> np.ndarray:
    """The chances [budgets, styles] that a method comes to, the fast style first."""
    state = method.start(TWO, np.random.default_rng(0))
    for i in range(steps):
        state = method.step(TWO, state, np.random.default_rng(i))
    return method.solution(TWO, state)["policy"][:, 0, np.argsort(-state["speeds"][0])]


def test_cloning_comes_to_the_styles_of_right_traces() -> None:
    right = TWO.in_time(np.array(TWO.speeds))[[2, 7]]
    assert learned(ClonedTraces(batch=500)) == pytest.approx(right / right.sum(1, keepdims=True), abs=0.02)


def test_a_sharp_clone_keeps_to_the_style_that_came_most_often() -> None:
    method = ClonedTraces(sharpness=1e6)
    state = method.start(TWO, np.random.default_rng(0)) | {"traces": np.array([[[3.0, 2.0]], [[0.0, 1.0]]])}
    assert method.policy(TWO, state).tolist() == [[[1, 0]], [[0, 1]]]
    assert method.replace(sharpness=2.0).policy(TWO, state)[0, 0] == pytest.approx(np.array([16, 9]) / 25)


def test_with_rewards_the_fast_style_is_found() -> None:
    assert learned(Verified(batch=100)).tolist() == [[1, 0], [1, 0]]


def test_what_was_not_seen_may_be_worth_nothing() -> None:
    method = Verified(bound=0.3)
    state = method.start(TWO, np.random.default_rng(0))
    assert method.policy(TWO, state).tolist() == [[[0.5, 0.5]]] * 2
    state |= {"traces": np.array([[[1.0, 0]], [[4.0, 1]]]), "sums": np.array([[[2.0, 0]], [[8.0, 5]]])}
    # worst rewards: 2 - .9 of the first style, 0 of the second; 2 - 1.2 and 5 - 2.4
    assert method.policy(TWO, state).tolist() == [[[1, 0]], [[0, 1]]]


def test_measures_are_of_the_policy_and_grow_with_the_budget() -> None:
    speeds = np.array([[0.5, 0.1]])
    even = TWO.measures({"policy": np.full((2, 1, 2), 0.5), "speeds": speeds})
    short, long = TWO.rewards(speeds[0]).mean(1)
    assert even == pytest.approx({"reward_3": short, "reward_8": long, "growth": long - short})


def test_both_sides_are_given_as_many_traces_of_as_many_tokens() -> None:
    for tokens in (24, 96):
        sides = [CLAIM.arms[f"{side}_{tokens}"] for side in ("verified", "cloned")]
        assert all(isinstance(r, Recipe) and r.iterations * r.episodes_per_iteration == 1024 for r in sides)
        assert all(
            isinstance(r, Recipe) and r.budget.at(1, "easy").turn_tokens == r.test_budget.at(1, "easy").turn_tokens
            for r in sides
        )
        assert CLAIM.changes(f"cloned_{tokens}").keys() >= {"credit", "loss", "iterations"}


@pytest.mark.parametrize("side", ["verified", "cloned"])
def test_both_sides_train_another_model_on_other_tasks_by_settings_alone(side: str, tmp_path: Path) -> None:
    cloned = ("credit.type=filtered_bc", "loss.type=reinforce", "iterations=1", "episodes_per_iteration=32")
    run = train_elsewhere("vb_vf", tmp_path, *(cloned if side == "cloned" else ()))
    rows = rows_of(run, "train")
    assert sum(row["summary"]["episodes"] for row in rows) == 32 and any(row["grad_norm"] > 0 for row in rows)
    if side == "cloned":  # what was wrong is left out
        right = round(rows[0]["summary"]["success"] * 32)
        assert 0 < right < 32 and rows[0]["trained_turns"] == 2 * right  # two passes

"""LOOP: what its ratios are of, what they clip, and which of them is an importance weight."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from elsewhere import train_elsewhere
from enumerated import ascent
from helpers import rows_of

from longstride.exact.answers import Answers
from longstride.exact.learner import gradient
from longstride.methods import PPO, Constant, GroupRelative, Mean
from longstride.methods.base import ADVANTAGES, BEHAVIOUR
from longstride.papers.loop.exact import HIGH, LOW
from longstride.papers.loop.method import DeadZone, TrajectoryPPO
from longstride.papers.loop.recipe import CLAIM
from longstride.run.recipe import Recipe

PROBLEM = Answers(tasks=((0.4,),), vocabulary=2, length=2)
RLOO = GroupRelative(baseline="leave_one_out", normalize="none")


def test_the_ratio_of_a_trajectory_is_the_product_and_is_clipped_as_one() -> None:
    streams = {ADVANTAGES: torch.tensor([2.0, 2.0, -1.0]), BEHAVIOUR: torch.zeros(3)}
    tokens: Any = SimpleNamespace(streams=streams, sequence_P=torch.tensor([0, 0, 1]), entropy_P=None)
    logp = torch.log(torch.tensor([1.05, 1.08, 1.2]))  # ratios 1.134 and 1.2
    terms = TrajectoryPPO(clip_low=LOW, clip_high=HIGH)(logp, tokens)
    assert terms.clipped_P is not None
    assert terms.clipped_P.tolist() == [True, True, False]
    np.testing.assert_allclose(terms.loss_P, [-2.0 * 1.1 / 2] * 2 + [1.2], atol=1e-6)
    by_token = PPO(clip_low=LOW, clip_high=HIGH)(logp, tokens)
    assert by_token.clipped_P is not None and by_token.clipped_P.tolist() == [False, False, False]
    np.testing.assert_allclose(by_token.loss_P, [-2.1, -2.16, 1.2], atol=1e-6)


def test_the_ratio_of_a_long_turn_is_a_number() -> None:
    """A hundred tokens that have each become e times as likely: e^100 is no float, and the loss would be infinite."""
    streams = {ADVANTAGES: -torch.ones(100), BEHAVIOUR: torch.full((100,), -2.0)}
    tokens: Any = SimpleNamespace(streams=streams, sequence_P=torch.zeros(100, dtype=torch.long), entropy_P=None)
    logp = torch.full((100,), -1.0, requires_grad=True)
    TrajectoryPPO()(logp, tokens).loss_P.sum().backward()
    assert logp.grad is not None and logp.grad.isfinite().all()


def test_the_lower_bound_is_one_over_the_upper() -> None:
    assert pytest.approx(1 - LOW) == 1 / (1 + HIGH)


def test_at_ratio_one_both_have_the_same_gradient() -> None:
    logits = PROBLEM.begin(np.random.default_rng(0))
    samples = RLOO(PROBLEM.play(logits, 6, np.random.default_rng(1)))
    losses = [loss(aggregation=Mean(over="episode"), clip_low=LOW, clip_high=HIGH) for loss in (PPO, TrajectoryPPO)]
    token, whole = (gradient(PROBLEM.tree, logits, samples, loss) for loss in losses)
    assert np.abs(token).max() > 0.01
    np.testing.assert_allclose(token, whole, atol=1e-12)


def test_without_a_clip_the_ratio_of_a_trajectory_is_exact_for_an_older_policy_and_that_of_tokens_is_not() -> None:
    old = PROBLEM.begin(np.random.default_rng(0))
    now = old + np.random.default_rng(1).normal(size=old.shape)
    exact = PROBLEM.tree.gradient(now, np.ones(1))
    found = [
        ascent(
            PROBLEM, now, RLOO, loss(aggregation=Constant(per="episode"), clip_low=1.0, clip_high=1e6), 2, sampler=old
        )
        for loss in (TrajectoryPPO, PPO)
    ]
    np.testing.assert_allclose(found[0], exact, atol=1e-9)
    bias = np.abs(found[1] - exact).max() / np.abs(exact).max()
    assert 0.05 < bias < 1


def test_advantages_in_the_dead_zone_are_none() -> None:
    logits = PROBLEM.begin(np.random.default_rng(0))
    episodes = PROBLEM.episodes(logits, np.array([[0, 1, 2]]))
    for t, reward in zip(episodes, (0.5, 0.504, 0.53), strict=True):
        t.reward = reward
    found = [s.advantages[0] for s in DeadZone(baseline="leave_one_out", normalize="none")(episodes)]
    assert found == pytest.approx([0.5 - 0.517, 0.504 - 0.515, 0.53 - 0.502])
    wider = [s.advantages[0] for s in DeadZone(baseline="leave_one_out", normalize="none", below=0.015)(episodes)]
    assert wider == pytest.approx([0.5 - 0.517, 0.0, 0.53 - 0.502])


@pytest.mark.parametrize("loss", ["ppo", "longstride.papers.loop.method:TrajectoryPPO"])
def test_it_trains_another_model_on_other_tasks_of_several_turns_by_settings_alone(loss: str, tmp_path: Path) -> None:
    run = train_elsewhere("loop", tmp_path, f"loss.type={loss}", "budget.turns=3", "iterations=1")
    (row,) = rows_of(run, "train")
    assert row["summary"]["length"] > 1 and row["grad_norm"] > 0


def test_the_arms_of_the_claim_answer_in_one_turn_so_that_all_cost_alike() -> None:
    for arm in CLAIM.arms.values():
        assert isinstance(arm, Recipe) and arm.budget.at(1, "hard").turns == 1
    assert (
        len({arm.iterations * arm.episodes_per_iteration for arm in CLAIM.arms.values() if isinstance(arm, Recipe)})
        == 1
    )

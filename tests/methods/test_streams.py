"""Streams: numbers of a credit reach a loss by their name alone, through the learner and through a run."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from by_hand import assert_same, growing_group, random_samples, step_of, step_of_learner
from estimators import Table, ascent_of, log_policy, table_learner
from helpers import make_trajectory, make_turn, rows_of
from one_page import make_recipe, save_model

from longstride.core.trajectory import Trajectory
from longstride.learner.batching import StreamTable
from longstride.methods import KL, PPO, Advantage, Aggregation, Constant, Credit, Loss, Mean, OnPolicy, Sample
from longstride.methods.base import ADVANTAGES
from longstride.methods.losses import LossTerms
from longstride.methods.tokens import Tokens
from longstride.run.loop import train

MARGIN = "margin"
"""A stream that nothing but the two classes below knows."""
LENGTH_WEIGHT = "length_weight"
"""A coefficient of a sample that nothing but the loss below knows."""


class Margins(Credit):
    """The place of a token in its turn as its margin, and its episode's reward as advantage."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        return [[t.reward] * t.length for t in played]

    def streams(self, played: Sequence[Trajectory]) -> Mapping[str, Sequence[Sequence[Advantage]]]:
        return {MARGIN: [[[0.25 * k for k in range(len(turn.sampled_ids))] for turn in t.turns] for t in played]}


class MarginLoss(Loss):
    """-A (log pi - margin)^2 / 2: its gradient is that of `Reinforce`, times log pi - margin."""

    aggregation: Aggregation = Constant()

    def policy_terms(self, logp_P: Any, tokens: Tokens) -> LossTerms:
        off = logp_P - tokens.streams[MARGIN]
        return LossTerms(-tokens.streams[ADVANTAGES] * off.square() / 2, metrics={"off": off.detach()})


class LengthBonus(PPO):
    """PPO and a bonus for the log-probability of every token, weighed by the length of its sample."""

    def coefficients(self, samples: Sequence[Sample]) -> dict[str, list[float]]:
        return super().coefficients(samples) | {LENGTH_WEIGHT: [0.1 * len(s.sampled_ids) for s in samples]}

    def policy_terms(self, logp_P: Any, tokens: Tokens) -> LossTerms:
        terms = super().policy_terms(logp_P, tokens)
        terms.loss_P = terms.loss_P - tokens.streams[LENGTH_WEIGHT] * logp_P
        return terms


def test_a_stream_of_a_credit_is_read_by_a_loss_under_its_name():
    logits = np.random.default_rng(0).normal(size=(4, 4))
    samples = Margins()([make_trajectory([make_turn([2, 3, 1], [0])], reward=2.0)])
    expected = np.zeros_like(logits)
    for k, (state, token) in enumerate([(0, 2), (2, 3), (3, 1)]):
        score = np.eye(4)[token] - np.exp(log_policy(logits)[state])
        expected[state] += 2.0 * (log_policy(logits)[state, token] - 0.25 * k) * score
    np.testing.assert_allclose(ascent_of(logits, samples, MarginLoss()), expected, atol=1e-5)


@pytest.mark.parametrize("loss", [MarginLoss(aggregation=Mean(over="episode")), LengthBonus()])
def test_streams_and_coefficients_stay_with_their_tokens_however_a_step_is_cut(loss: Loss):
    rng = random.Random(0)
    samples = growing_group(vocabulary=6) + random_samples(4, vocabulary=6)
    for s in samples:
        s.streams[MARGIN] = [rng.random() for _ in s.sampled_ids]
    logits = np.random.default_rng(1).normal(size=(6, 6))
    expected = step_of(Table(logits), samples, loss)
    for order, micro_tokens in ((samples, 1), (samples[::-1], 64), (samples, 10_000)):
        assert_same(step_of_learner(table_learner(logits, loss, micro_tokens=micro_tokens), order), expected)


def test_a_coefficient_is_of_a_sample_and_takes_the_share_of_the_aggregation():
    samples = [Sample([0], [1, 2], {ADVANTAGES: [0.0, 3.0]}), Sample([0], [3], {ADVANTAGES: [1.0]})]
    table = StreamTable(samples, {LENGTH_WEIGHT: [0.2, 0.1]}, shares=[0.5, 1.0])
    streams = table.at(np.arange(3), "cpu")
    assert streams[ADVANTAGES].tolist() == pytest.approx([0, 1.5, 1])
    assert streams[LENGTH_WEIGHT].tolist() == pytest.approx([0.1, 0.1, 0.1])


def test_coefficients_of_one_loss_stand_beside_one_another():
    samples = random_samples(3)
    loss = LengthBonus(kl=KL(coefficient=0.5), entropy=0.25)
    assert set(loss.coefficients(samples)) == {"kl_coefficient", "entropy_coefficient", LENGTH_WEIGHT}


def test_a_stream_that_some_samples_lack_is_not_a_number_there():
    one, other = Sample([0], [1], {ADVANTAGES: [1.0], MARGIN: [0.5]}), Sample([0], [2], {ADVANTAGES: [1.0]})
    found = StreamTable([one, other]).at(np.arange(2), "cpu")[MARGIN]
    assert found[0] == 0.5 and found[1].isnan()


def test_a_run_passes_a_stream_from_its_credit_to_its_loss(tmp_path):
    changes = {"credit": Margins(), "loss": MarginLoss(), "replay": OnPolicy(), "iterations": 2}
    recipe = make_recipe(save_model(tmp_path / "model"), **changes)
    train(recipe, tmp_path / "run")
    rows = rows_of(tmp_path / "run", "train")
    assert all(row["off"] < 0 for row in rows if row["trained_turns"])
    assert sum(row["trained_turns"] for row in rows) > 0

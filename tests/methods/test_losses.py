"""Losses, the KL term and aggregation by hand, and what all losses have in common."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from by_hand import Batch
from estimators import LOSSES, OPEN
from torch import Tensor

from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.methods import (
    KL,
    PPO,
    Aggregation,
    Anchor,
    Constant,
    ImportanceCorrection,
    Loss,
    Mean,
    Reinforce,
    Sample,
    Start,
)
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, PROXIMAL, REFERENCE
from longstride.methods.kl import Latest, MovingAverage
from longstride.methods.losses import ENTROPY_COEFFICIENT, KL_COEFFICIENT, LossTerms, PolicyDrift
from longstride.methods.ratios import CISPO, GSPO

every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def batch(advantages: Any, old: Tensor, sequences: Sequence[int], **streams: Tensor) -> Batch:
    """Tokens of these advantages whose sampler and start of the update agree."""
    values = {ADVANTAGES: torch.as_tensor(advantages, dtype=old.dtype), BEHAVIOUR: old, PROXIMAL: old}
    return Batch(values | streams, torch.tensor(sequences))


def terms(loss: Loss, ratios: Sequence[float], advantages: Sequence[float], sequences: Sequence[int] = ()) -> Any:
    """Terms of tokens with these ratios to the sampler, and the gradient in their log-probabilities."""
    logp = torch.tensor(ratios, dtype=torch.float64).log().requires_grad_()
    found = loss(logp, batch(advantages, torch.zeros_like(logp.detach()), sequences or range(len(ratios))))
    (gradient,) = torch.autograd.grad(found.loss_P.sum(), logp)
    return found, gradient.tolist()


@pytest.mark.parametrize(
    ("loss", "ratio", "advantage", "expected", "slope"),
    [
        (PPO(), 1.1, 1.0, -1.1, -1.1),
        (PPO(), 1.5, 1.0, -1.2, 0.0),
        (PPO(clip_high=0.28), 1.5, 1.0, -1.28, 0.0),
        (PPO(), 0.5, 1.0, -0.5, -0.5),  # a good token that became rarer is pulled back
        (PPO(), 0.5, -1.0, 0.8, 0.0),
        (PPO(clip_low=0.1), 0.5, -1.0, 0.9, 0.0),
        (PPO(), 5.0, -1.0, 5.0, 5.0),
        (PPO(dual_clip=3.0), 5.0, -1.0, 3.0, 0.0),
        (PPO(dual_clip=3.0), 2.0, -1.0, 2.0, 2.0),
        (PPO(dual_clip=3.0), 5.0, 1.0, -1.2, 0.0),
    ],
)
def test_ppo_clips_where_the_ratio_has_gone_too_far_in_the_wanted_direction(loss, ratio, advantage, expected, slope):
    found, gradient = terms(loss, [ratio], [advantage])
    assert found.loss_P.item() == pytest.approx(expected)
    assert gradient == pytest.approx([slope])
    assert found.clipped_P.item() == (slope == 0)


def test_cispo_weighs_by_the_capped_ratio_and_every_token_keeps_a_gradient():
    """AIPO: ratios 0.1, 1, 50 under a cap of 5 weigh 0.1, 1, 5."""
    found, gradient = terms(CISPO(), [0.1, 1.0, 50.0], [1.0, 1.0, -1.0])
    assert gradient == pytest.approx([-0.1, -1, 5])
    assert found.clipped_P.tolist() == [False, False, True]
    assert terms(CISPO(max=1.2, min=0.8), [0.1, 1.0, 50.0], [1.0] * 3)[1] == pytest.approx([-0.8, -1, -1.2])


def test_gspo_gives_a_sequence_the_geometric_mean_of_its_ratios_and_clips_all_of_it():
    ratios = [2.0, 0.5, 4.0, 1.1, 0.9]
    found, gradient = terms(GSPO(**OPEN), ratios, [1, 1, 1, -2, -2], [7, 7, 7, 3, 3])
    first, second = 4 ** (1 / 3), 0.99**0.5
    assert gradient == pytest.approx([-first] * 3 + [2 * second] * 2)
    assert found.loss_P.tolist() == pytest.approx(gradient)
    found, gradient = terms(GSPO(clip_low=0.2, clip_high=0.2), ratios, [1, 1, 1, -2, -2], [7, 7, 7, 3, 3])
    assert gradient == pytest.approx([0] * 3 + [2 * second] * 2)
    assert found.clipped_P.tolist() == [True] * 3 + [False] * 2


def test_an_importance_correction_truncates_or_masks_what_is_out_of_bounds():
    def weights(correction: ImportanceCorrection, sequences: Sequence[int] = (0, 1, 2)) -> list[float]:
        log_w = torch.tensor([0.1, 1.0, 6.0], dtype=torch.float64).log()
        zero = torch.zeros_like(log_w)
        return correction(batch(zero, zero, sequences, **{PROXIMAL: log_w})).tolist()

    assert weights(ImportanceCorrection(max=5)) == pytest.approx([0.1, 1, 5])
    assert weights(ImportanceCorrection(max=5, mode="mask")) == pytest.approx([0.1, 1, 0])  # AsyncWebRL
    assert weights(ImportanceCorrection(max=2, min=0.5, mode="mask")) == pytest.approx([0, 1, 0])
    assert weights(ImportanceCorrection(max=5, level="sequence"), (0, 1, 0)) == pytest.approx([0.6, 1, 0.6])


def test_decoupled_ppo_clips_against_the_start_of_the_update_and_weighs_by_what_lies_before():
    """pi / proximal = 1.5, clipped at 1.2; proximal / behaviour = 1.6."""
    behaviour = torch.tensor([0.2], dtype=torch.float64).log()
    proximal, now = behaviour + np.log(1.6), behaviour + np.log(2.4)
    tokens = batch([1.0], behaviour, [0], **{PROXIMAL: proximal})
    assert PPO(correction=ImportanceCorrection())(now, tokens).loss_P.item() == pytest.approx(-1.2 * 1.6)
    assert PPO()(now, tokens).loss_P.item() == pytest.approx(-1.2)


def test_a_loss_says_which_streams_the_learner_has_to_make():
    both = PPO(correction=ImportanceCorrection(), kl=KL())
    losses = (Reinforce(), PPO(), PPO(correction=ImportanceCorrection()), Reinforce(kl=KL()), both)
    assert [set(loss.needs) for loss in losses] == [set(), set(), {PROXIMAL}, {REFERENCE}, {PROXIMAL, REFERENCE}]


@every_loss
def test_at_ratio_1_every_loss_has_the_gradient_of_reinforce_and_nothing_is_clipped(loss: Loss):
    advantages = [1.0, -0.5, 2.0, -3.0]
    logp = torch.tensor([-0.1, -2.0, -1.0, -0.7], requires_grad=True)
    found = loss(logp, batch(advantages, logp.detach().clone(), [0, 0, 1, 1]))
    (gradient,) = torch.autograd.grad(found.loss_P.sum(), logp)
    assert gradient.tolist() == pytest.approx([-a for a in advantages])
    assert found.clipped_P is None or not found.clipped_P.any()


@every_loss
def test_twice_the_advantage_is_twice_the_loss(loss: Loss):
    ratios, advantages = [0.3, 0.9, 1.1, 4.0] * 2, [1.0] * 4 + [-1.0] * 4
    once, twice = (terms(loss, ratios, [c * a for a in advantages], [0, 0, 1, 1, 2, 2, 3, 3])[0] for c in (1, 2))
    torch.testing.assert_close(2 * once.loss_P, twice.loss_P)


@every_loss
def test_a_token_that_became_impossible_does_not_overflow(loss: Loss):
    found, gradient = terms(loss, [1e-30, 1e30], [1.0, -1.0])
    assert torch.isfinite(found.loss_P).all() and np.isfinite(gradient).all()


@pytest.mark.parametrize(
    "loss",
    [
        *LOSSES.values(),
        Reinforce(aggregation=Constant(length=64), kl=KL(coefficient=0.1, anchor=Latest(every=3)), entropy=0.01),
    ],
)
def test_a_loss_is_built_again_from_its_data(loss: Loss):
    assert build(Loss, loss.as_data()) == loss


# The KL term and the entropy bonus

ESTIMATORS = ("k1", "k2", "k3", "k3+")


def estimate(name: str, logp: Tensor, reference: Tensor, sequences: Sequence[int] = (), level: str = "token") -> Tensor:
    """The estimates of tokens, each of a sequence of its own unless `sequences` says otherwise."""
    tokens = Batch({REFERENCE: reference}, torch.tensor(sequences or range(len(logp))))
    return KL.model_validate({"estimator": name, "level": level})(logp, tokens)[0]


@pytest.mark.parametrize(
    ("name", "value", "slope"),
    [
        ("k1", np.log(4), 1.0),
        ("k2", np.log(4) ** 2 / 2, np.log(4)),
        ("k3", 0.25 - 1 + np.log(4), 1 - 0.25),
        ("k3+", 0.25 - 1 + np.log(4), np.log(4)),
    ],
)
def test_kl_estimates_of_a_token_four_times_as_likely_as_under_the_reference(name, value, slope):
    logp, reference = torch.tensor([0.8], dtype=torch.float64).log(), torch.tensor([0.2], dtype=torch.float64).log()
    found = estimate(name, logp.requires_grad_(), reference)
    assert found.item() == pytest.approx(value)
    (gradient,) = torch.autograd.grad(found.sum(), logp)
    assert gradient.item() == pytest.approx(slope)


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize(("name", "slope"), [("k2", -30.0), ("k3", -1.0), ("k3+", -30.0)])
def test_a_policy_that_is_far_from_the_reference_is_still_pulled_back(name: str, slope: float, level: str) -> None:
    logp = torch.tensor([-0.5, -0.5], dtype=torch.float64, requires_grad=True)
    found = estimate(
        name, logp, logp.detach() - 15.0 - 15.0 * (level == "token"), [0, 0] if level == "sequence" else (), level
    )
    (gradient,) = torch.autograd.grad(found.sum(), logp)
    assert gradient.tolist() == pytest.approx([-slope, -slope])


def divergence(p: Tensor, q: Tensor) -> Tensor:
    return (p * (p.log() - q.log())).sum()


def test_means_and_gradients_of_the_kl_estimates_over_all_tokens_of_a_distribution():
    """k1 and k3 have the mean of the divergence, k2 and k3+ its gradient, k1 none, k3 that of the other direction."""
    rng = torch.Generator().manual_seed(3)
    logits = torch.randn(5, generator=rng, dtype=torch.float64).requires_grad_()
    reference = torch.randn(5, generator=rng, dtype=torch.float64).log_softmax(0)
    p, q = logits.softmax(0), reference.exp()
    exact, other = divergence(p, q), divergence(q, p)
    (forward,), (backward,) = (torch.autograd.grad(x, logits, retain_graph=True) for x in (exact, other))
    values, gradients = {}, {}
    for name in ESTIMATORS:
        mean = (p.detach() * estimate(name, logits.log_softmax(0), reference)).sum()
        values[name] = mean.item()
        (gradients[name],) = torch.autograd.grad(mean, logits)
    for name in ("k1", "k3", "k3+"):
        assert values[name] == pytest.approx(exact.item())
    assert abs(values["k2"] / exact.item() - 1) > 0.05
    torch.testing.assert_close(gradients["k1"], torch.zeros(5, dtype=torch.float64))
    for name in ("k2", "k3+"):
        torch.testing.assert_close(gradients[name], forward)
    torch.testing.assert_close(gradients["k3"], backward)
    assert torch.cosine_similarity(gradients["k3"], forward, 0) < 0.99


def test_at_sequence_level_the_kl_estimates_are_of_the_distribution_of_sequences():
    """All sequences of two tokens, the second of which depends on the first: what the first does to the divergence of
    the second is part of the gradient, and is not at token level."""
    rng = torch.Generator().manual_seed(3)
    logits = torch.randn(4, 3, generator=rng, dtype=torch.float64).requires_grad_()
    other = torch.randn(4, 3, generator=rng, dtype=torch.float64).log_softmax(1)
    pairs = torch.cartesian_prod(torch.arange(3), torch.arange(3))
    of = lambda logp: torch.stack([logp[3][pairs[:, 0]], logp[pairs[:, 0], pairs[:, 1]]], 1)  # noqa: E731
    logp_N_2, reference_N_2 = of(logits.log_softmax(1)), of(other)
    p_N, q_N = logp_N_2.sum(1).exp(), reference_N_2.sum(1).exp()
    exact = divergence(p_N, q_N)
    (gradient,) = torch.autograd.grad(exact, logits, retain_graph=True)
    for name, value_fits, gradient_fits in (("k1", True, False), ("k2", False, True), ("k3+", True, True)):
        for level in ("sequence", "token"):
            numbers = [n for n in range(9) for _ in range(2)]
            found = estimate(name, logp_N_2.flatten(), reference_N_2.flatten(), numbers, level).unflatten(0, (9, 2))
            if level == "sequence":
                torch.testing.assert_close(found[:, 0], found[:, 1])  # spread evenly over the tokens
            mean = (p_N.detach() * found.sum(1)).sum()
            (slope,) = torch.autograd.grad(mean, logits, retain_graph=True)
            assert (mean.item() == pytest.approx(exact.item())) == value_fits
            assert torch.allclose(slope, gradient) == (gradient_fits and level == "sequence")


@every_loss
def test_the_kl_term_and_the_entropy_bonus_are_added_to_every_loss_by_streams_of_their_own(loss: Loss):
    logp, old = torch.tensor([-0.1, -2.0, -1.0]), torch.tensor([-0.2, -1.9, -1.0])
    kl_weights, entropy_weights = torch.tensor([2.0, 0, 3]), torch.tensor([0.5, 1, 0])
    streams = {REFERENCE: logp - 0.5, KL_COEFFICIENT: kl_weights, ENTROPY_COEFFICIENT: entropy_weights}
    tokens = batch([1.0, -0.5, 0.0], old, [0, 0, 1], **streams)
    tokens.entropy_P = torch.tensor([0.1, 0.2, 0.3])
    plain, held = loss(logp, tokens), loss.replace(kl=KL(estimator="k2"), entropy=0.1)(logp, tokens)
    expected = kl_weights * 0.125 - entropy_weights * tokens.entropy_P
    torch.testing.assert_close(held.loss_P - plain.loss_P, expected)
    torch.testing.assert_close(held.metrics["kl"], torch.full((3,), np.exp(-0.5) - 0.5))
    torch.testing.assert_close(held.metrics["entropy"], tokens.entropy_P)
    assert not plain.metrics


def test_metrics_of_micro_batches_become_means_over_the_tokens_of_a_step():
    drift, ratios = PolicyDrift(), torch.tensor([0.5, 1.0, 4.0])
    for part, clipped in ((slice(0, 1), [True]), (slice(1, 3), [False, False])):
        log_ratio = ratios[part].log()
        drift.add(LossTerms(torch.zeros(len(clipped)), log_ratio, torch.tensor(clipped), {"kl": 2 * ratios[part]}))
    expected = (ratios - 1 - ratios.log()).mean().item()
    assert drift.metrics() == pytest.approx(
        {"kl": 11 / 3, "clip_fraction": 1 / 3, "approx_kl": expected, "ratio_max": 4.0}
    )


def test_the_coefficients_of_a_sample_are_those_of_the_kl_term_in_its_turn_and_of_the_entropy_bonus():
    class FirstTurnOnly(KL):
        def at(self, turn: int) -> float:
            return self.coefficient if turn == 0 else 0.0

    samples = [Sample([0], [1], {ADVANTAGES: [0.0]}, turn=k) for k in (0, 1, 9)]
    assert PPO(kl=FirstTurnOnly(coefficient=0.5)).coefficients(samples) == {KL_COEFFICIENT: [0.5, 0, 0]}
    assert PPO(kl=KL(coefficient=0.04)).coefficients(samples) == {KL_COEFFICIENT: [0.04] * 3}
    assert PPO(entropy=0.01).coefficients(samples) == {ENTROPY_COEFFICIENT: [0.01] * 3}
    assert PPO().coefficients(samples) == {}


def test_an_anchor_stays_follows_slowly_or_catches_up_at_the_end_of_each_phase():
    def steps(anchor: Anchor) -> list[float]:
        return [anchor.step(iteration) for iteration in range(1, 7)]

    assert steps(Start()) == [0.0] * 6
    assert steps(MovingAverage(decay=0.75)) == [0.25] * 6
    assert steps(Latest(every=3)) == [0, 0, 1, 0, 0, 1]
    with pytest.raises(ConfigError, match="every"):
        build(Anchor, {"type": "latest", "every": 0})


# Aggregation


def sample(tokens: int, episode: int = 0, group: int = 0) -> Sample:
    return Sample([0], [1] * tokens, {ADVANTAGES: [1.0] * tokens}, episode, group)


def share_of_each(aggregation: Aggregation, samples: list[Sample]) -> list[float]:
    """What all tokens of each sample weigh together."""
    shares, denominator = aggregation(samples)
    return [share * len(s.sampled_ids) / denominator for share, s in zip(shares, samples, strict=True)]


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        (Mean(over="prompt"), [0.05, 0.45, 0.25, 0.25]),
        (Mean(over="token"), [10 / 300, 90 / 300, 100 / 300, 100 / 300]),
        (Mean(over="episode"), [0.1 / 3, 0.9 / 3, 1 / 3, 1 / 3]),
        (Mean(over="sequence"), [0.25] * 4),
        (Constant(length=50), [0.05, 0.45, 0.5, 0.5]),
        (Constant(length=50, per="episode"), [0.2 / 3, 1.8 / 3, 2 / 3, 2 / 3]),
    ],
)
def test_shares_of_samples_by_hand(aggregation, expected):
    """One prompt with an episode of two turns, another with two episodes of one turn."""
    samples = [sample(10, 0, 0), sample(90, 0, 0), sample(100, 1, 1), sample(100, 2, 1)]
    assert share_of_each(aggregation, samples) == pytest.approx(expected)


def test_prompts_of_10_and_100_tokens_share_half_and_half_or_by_tokens():
    samples = [sample(10, 0, 0), sample(100, 1, 1)]
    assert share_of_each(Mean(over="prompt"), samples) == pytest.approx([0.5, 0.5])
    assert share_of_each(Mean(over="token"), samples) == pytest.approx([10 / 110, 100 / 110])


def test_with_equal_lengths_all_aggregations_agree():
    samples = [sample(8, n, n // 2) for n in range(6)]
    kinds = [Mean(over=o) for o in ("token", "sequence", "episode", "prompt")] + [
        Constant(length=8, per=p) for p in ("sequence", "episode")
    ]
    for aggregation in kinds:
        assert share_of_each(aggregation, samples) == pytest.approx([1 / 6] * 6)

"""Losses and aggregation by hand, and what all losses have in common."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from longstride.core.component import build
from longstride.methods import CISPO, GSPO, KL, PPO, Constant, Correction, Loss, Mean, Reinforce, Sample
from longstride.methods.aggregation import Aggregation

OPEN: dict[str, Any] = {"low": 1.0, "high": 1e6}
"""A clip that never binds."""
LOSSES = [
    Reinforce(), PPO(), PPO(high=0.28, dual=3.0), GSPO(), CISPO(), PPO(correction=Correction()),
    GSPO(correction=Correction(level="sequence")), CISPO(correction=Correction(beyond="mask", cap=5.0)),
]  # fmt: skip


@dataclass
class Given:
    """Stands for a micro-batch."""

    weight_P: Tensor
    behaviour_P: Tensor
    proximal_P: Tensor
    sequence_P: Tensor
    reference_P: Tensor = field(default_factory=lambda: torch.tensor([]))
    penalty_P: Tensor = field(default_factory=lambda: torch.tensor([]))


def terms(loss: Loss, ratios: Sequence[float], advantages: Sequence[float], sequences: Sequence[int] = ()) -> Any:
    """Terms of tokens with these ratios to the sampler, and the gradient in their log-probabilities."""
    logp = torch.tensor(ratios, dtype=torch.float64).log().requires_grad_()
    old = torch.zeros(len(ratios), dtype=torch.float64)
    numbers = torch.tensor(sequences or range(len(ratios)))
    out = loss(logp, Given(torch.tensor(advantages, dtype=torch.float64), old, old, numbers))
    (gradient,) = torch.autograd.grad(out.loss_P.sum(), logp)
    return out, gradient.tolist()


@pytest.mark.parametrize(
    ("loss", "ratio", "advantage", "expected", "slope"),
    [
        (PPO(), 1.1, 1.0, -1.1, -1.1),
        (PPO(), 1.5, 1.0, -1.2, 0.0),
        (PPO(high=0.28), 1.5, 1.0, -1.28, 0.0),
        (PPO(), 0.5, 1.0, -0.5, -0.5),  # a good token that became rarer is pulled back
        (PPO(), 0.5, -1.0, 0.8, 0.0),
        (PPO(low=0.1), 0.5, -1.0, 0.9, 0.0),
        (PPO(), 5.0, -1.0, 5.0, 5.0),
        (PPO(dual=3.0), 5.0, -1.0, 3.0, 0.0),
        (PPO(dual=3.0), 2.0, -1.0, 2.0, 2.0),
        (PPO(dual=3.0), 5.0, 1.0, -1.2, 0.0),
    ],
)
def test_ppo_clips_where_the_ratio_has_gone_too_far_in_the_wanted_direction(loss, ratio, advantage, expected, slope):
    out, gradient = terms(loss, [ratio], [advantage])
    assert out.loss_P.item() == pytest.approx(expected)
    assert gradient == pytest.approx([slope])
    assert out.clipped_P.item() == (slope == 0)


def test_cispo_weighs_by_the_capped_ratio_and_silences_no_token():
    """AIPO: ratios 0.1, 1, 50 under a cap of 5 weigh 0.1, 1, 5."""
    out, gradient = terms(CISPO(), [0.1, 1.0, 50.0], [1.0, 1.0, -1.0])
    assert gradient == pytest.approx([-0.1, -1, 5])
    assert out.clipped_P.tolist() == [False, False, True]
    assert terms(CISPO(cap=1.2, floor=0.8), [0.1, 1.0, 50.0], [1.0] * 3)[1] == pytest.approx([-0.8, -1, -1.2])


def test_gspo_gives_a_sequence_the_geometric_mean_of_its_ratios_and_clips_it_whole():
    ratios = [2.0, 0.5, 4.0, 1.1, 0.9]
    out, gradient = terms(GSPO(**OPEN), ratios, [1, 1, 1, -2, -2], [7, 7, 7, 3, 3])
    first, second = 4 ** (1 / 3), 0.99**0.5
    assert gradient == pytest.approx([-first] * 3 + [2 * second] * 2)
    assert out.loss_P.tolist() == pytest.approx(gradient)
    out, gradient = terms(GSPO(low=0.2, high=0.2), ratios, [1, 1, 1, -2, -2], [7, 7, 7, 3, 3])
    assert gradient == pytest.approx([0] * 3 + [2 * second] * 2)
    assert out.clipped_P.tolist() == [True] * 3 + [False] * 2


def corrections(correction: Correction, ratios: Sequence[float], sequences: Sequence[int]) -> list[float]:
    log_w = torch.tensor(ratios, dtype=torch.float64).log()
    zero = torch.zeros_like(log_w)
    return correction(Given(zero, zero, log_w, torch.tensor(sequences))).tolist()


def test_a_correction_truncates_or_masks_what_is_out_of_bounds():
    ratios, each = [0.1, 1.0, 6.0], [0, 1, 2]
    assert corrections(Correction(cap=5), ratios, each) == pytest.approx([0.1, 1, 5])
    assert corrections(Correction(cap=5, beyond="mask"), ratios, each) == pytest.approx([0.1, 1, 0])  # AsyncWebRL
    assert corrections(Correction(cap=2, floor=0.5, beyond="mask"), ratios, each) == pytest.approx([0, 1, 0])
    assert corrections(Correction(cap=5, level="sequence"), ratios, [0, 1, 0]) == pytest.approx([0.6, 1, 0.6])


def test_decoupled_ppo_clips_against_the_start_of_the_update_and_weighs_by_what_lies_before():
    """pi / proximal = 1.5, clipped at 1.2; proximal / behaviour = 1.6."""
    behaviour = torch.tensor([0.2], dtype=torch.float64).log()
    proximal, now = behaviour + np.log(1.6), behaviour + np.log(2.4)
    given = Given(torch.ones(1, dtype=torch.float64), behaviour, proximal, torch.tensor([0]))
    assert PPO(correction=Correction())(now, given).loss_P.item() == pytest.approx(-1.2 * 1.6)
    assert PPO()(now, given).loss_P.item() == pytest.approx(-1.2)
    assert [loss.proximal for loss in (PPO(correction=Correction()), PPO(), Reinforce())] == [True, False, False]


@pytest.mark.parametrize("loss", LOSSES)
def test_at_ratio_1_every_loss_has_the_gradient_of_reinforce_and_nothing_is_clipped(loss):
    advantages = [1.0, -0.5, 2.0, -3.0]
    logp = torch.tensor([-0.1, -2.0, -1.0, -0.7], requires_grad=True)
    old = logp.detach().clone()
    out = loss(logp, Given(torch.tensor(advantages), old, old, torch.tensor([0, 0, 1, 1])))
    (gradient,) = torch.autograd.grad(out.loss_P.sum(), logp)
    assert gradient.tolist() == pytest.approx([-a for a in advantages])
    assert out.clipped_P is None or not out.clipped_P.any()


@pytest.mark.parametrize("loss", LOSSES)
def test_twice_the_advantage_is_twice_the_loss(loss):
    ratios, advantages = [0.3, 0.9, 1.1, 4.0] * 2, [1.0] * 4 + [-1.0] * 4
    once, twice = (terms(loss, ratios, [c * a for a in advantages], [0, 0, 1, 1, 2, 2, 3, 3])[0] for c in (1, 2))
    torch.testing.assert_close(2 * once.loss_P, twice.loss_P)


def test_a_token_that_became_impossible_does_not_overflow():
    for loss in LOSSES:
        out, gradient = terms(loss, [1e-30, 1e30], [1.0, -1.0])
        assert torch.isfinite(out.loss_P).all() and np.isfinite(gradient).all()


@pytest.mark.parametrize("loss", [*LOSSES, Reinforce(aggregation=Constant(length=64), kl=KL(by_turn=(0.1, 0)))])
def test_a_loss_is_built_again_from_its_data(loss):
    assert build(Loss, loss.as_data()) == loss


# Divergence from a reference

ESTIMATORS = ("k1", "k2", "k3", "k3+")


def estimate(name: str, logp: Tensor, reference: Tensor) -> Tensor:
    return KL.model_validate({"estimator": name})(logp, reference)[0]


@pytest.mark.parametrize(
    ("name", "value", "slope"),
    [
        ("k1", np.log(4), 1.0),
        ("k2", np.log(4) ** 2 / 2, np.log(4)),
        ("k3", 0.25 - 1 + np.log(4), 1 - 0.25),
        ("k3+", 0.25 - 1 + np.log(4), np.log(4)),
    ],
)
def test_what_a_token_four_times_as_likely_as_under_the_reference_costs(name, value, slope):
    logp, reference = torch.tensor([0.8], dtype=torch.float64).log(), torch.tensor([0.2], dtype=torch.float64).log()
    found = estimate(name, logp.requires_grad_(), reference)
    assert found.item() == pytest.approx(value)
    (gradient,) = torch.autograd.grad(found.sum(), logp)
    assert gradient.item() == pytest.approx(slope)


def divergence(p: Tensor, q: Tensor) -> Tensor:
    return (p * (p.log() - q.log())).sum()


def test_means_and_gradients_of_the_estimates_over_all_tokens_of_a_distribution():
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


@pytest.mark.parametrize("loss", LOSSES)
def test_a_divergence_is_added_to_every_loss_by_its_own_weight(loss: Loss):
    logp, old = torch.tensor([-0.1, -2.0, -1.0]), torch.tensor([-0.2, -1.9, -1.0])
    given = Given(
        torch.tensor([1.0, -0.5, 0.0]), old, old, torch.tensor([0, 0, 1]), logp - 0.5, torch.tensor([2, 0, 3])
    )
    plain, held = loss(logp, given), loss.model_copy(update={"kl": KL(estimator="k2")})(logp, given)
    torch.testing.assert_close(held.loss_P - plain.loss_P, torch.tensor([2, 0, 3]) * 0.125)
    torch.testing.assert_close(held.kl_P, torch.full((3,), np.exp(-0.5) - 0.5))
    assert plain.kl_P is None


def test_the_coefficient_goes_by_the_turn_and_the_last_one_stays():
    turns = [Sample([0], [1], [0.0], [0.0], turn=k) for k in (0, 1, 2, 9)]
    assert PPO(kl=KL(by_turn=(0.5, 0.1, 0.0))).penalties(turns) == [0.5, 0.1, 0, 0]
    assert PPO(kl=KL(coefficient=0.04)).penalties(turns) == [0.04] * 4
    assert PPO().penalties(turns) == []


# Aggregation


def sample(tokens: int, episode: int = 0, group: int = 0) -> Sample:
    return Sample([0], [1] * tokens, [1.0] * tokens, [0.0] * tokens, episode, group)


def each_share(aggregation: Aggregation, samples: list[Sample]) -> list[float]:
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
def test_shares_by_hand(aggregation, expected):
    """One prompt with an episode of two turns, another with two episodes of one turn."""
    samples = [sample(10, 0, 0), sample(90, 0, 0), sample(100, 1, 1), sample(100, 2, 1)]
    assert each_share(aggregation, samples) == pytest.approx(expected)


def test_prompts_of_10_and_100_tokens_share_half_and_half_or_by_tokens():
    samples = [sample(10, 0, 0), sample(100, 1, 1)]
    assert each_share(Mean(over="prompt"), samples) == pytest.approx([0.5, 0.5])
    assert each_share(Mean(over="token"), samples) == pytest.approx([10 / 110, 100 / 110])


def test_with_equal_lengths_all_aggregations_agree():
    samples = [sample(8, n, n // 2) for n in range(6)]
    kinds = [Mean(over=o) for o in ("token", "sequence", "episode", "prompt")] + [
        Constant(length=8, per=p) for p in ("sequence", "episode")
    ]
    for aggregation in kinds:
        assert each_share(aggregation, samples) == pytest.approx([1 / 6] * 6)

"""Losses of pairs: their gradients are those of the pair loss written directly, and pairs are never torn apart."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from by_hand import VOCABULARY, growing_group, logprobs, random_samples
from helpers import tiny_model
from torch import Tensor
from torch.nn import functional as F

from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import KL, Loss, Sample
from longstride.methods.base import ADVANTAGES, REFERENCE
from longstride.methods.preferences import DPO, IPO, PREFERRED, PairLoss, pair

WRITTEN_OUT: list[tuple[PairLoss, Callable[[Tensor], Tensor]]] = [
    (DPO(beta=0.3), lambda h: -F.logsigmoid(0.3 * h)),
    (IPO(tau=0.2), lambda h: (h - 1 / (2 * 0.2)) ** 2),
]


def learner_of(loss: Loss, **numbers: Any) -> Learner:
    """A policy in float64, and another one as its reference."""
    model, reference = (tiny_model(VOCABULARY, seed=k).double() for k in (0, 1))
    return Learner(model, LearnerConfig(dtype="float32", **numbers), loss, reference)


def some_pairs() -> list[Sample]:
    """Three pairs: answers to a shared prompt, to two prompts, and of different lengths."""
    alone, siblings = random_samples(4), growing_group(turns=1)
    return [
        *pair(siblings[2], siblings[3], number=0),
        *pair(alone[0], alone[1], number=1),
        *pair(alone[2], replace(alone[3], sampled_ids=[7], streams={ADVANTAGES: [0.0]}), number=2),
    ]


def gradients(learner: Learner, samples: Sequence[Sample]) -> dict[str, Tensor]:
    ready = learner.with_streams(samples, learner.loss.needs)
    learner.accumulate(learner.loss.reweigh(ready, learner.logprobs(ready)))
    return {name: p.grad.clone() for name, p in learner.parameters.items() if p.grad is not None}


def log_ratio(policy: Any, reference: Any, samples: Sequence[Sample]) -> Tensor:
    """log pi / ref of all sampled tokens of some samples together."""
    return sum((logprobs(policy, s) - logprobs(reference, s).detach()).sum() for s in samples) + torch.zeros(())


def written_out(learner: Learner, sides: Sequence[tuple[list[Sample], list[Sample]]], of: Callable) -> Any:
    """Gradients of the mean over pairs of the loss of a pair, by autograd."""
    reference = tiny_model(VOCABULARY, seed=1).double()
    losses = [
        of(log_ratio(learner.model, reference, one) - log_ratio(learner.model, reference, other))
        for one, other in sides
    ]
    return torch.autograd.grad(torch.stack(losses).mean(), list(learner.parameters.values()))


def assert_same(found: dict[str, Tensor], expected: Sequence[Tensor]) -> None:
    """Whether gradients agree to a millionth of the largest."""
    largest = max(gradient.abs().max().item() for gradient in expected)
    for gradient, wanted in zip(found.values(), expected, strict=True):
        torch.testing.assert_close(gradient, wanted, rtol=0, atol=1e-6 * largest)


@pytest.mark.parametrize(("loss", "of"), WRITTEN_OUT, ids=["dpo", "ipo"])
@pytest.mark.parametrize("micro_tokens", [1, 10_000])
def test_the_gradient_is_that_of_the_loss_of_a_pair_written_directly(loss: PairLoss, of, micro_tokens: int):
    learner, samples = learner_of(loss, micro_tokens=micro_tokens), some_pairs()
    found = gradients(learner, samples[::-1])
    sides = [([samples[k]], [samples[k + 1]]) for k in (0, 2, 4)]
    assert_same(found, written_out(learner, sides, of))


def test_a_side_may_be_the_turns_of_an_episode():
    """Log-ratios are summed over turns, and the step is still the mean over pairs."""
    (loss, of), episodes = WRITTEN_OUT[0], growing_group(turns=2)
    sides = [(episodes[0:2], episodes[2:4]), (episodes[4:5], episodes[6:8])]
    samples = [
        replace(s, pair=number, streams=s.streams | {PREFERRED: [float(wins)] * len(s.sampled_ids)})
        for number, (one, other) in enumerate(sides)
        for wins, side in ((True, one), (False, other))
        for s in side
    ]
    learner = learner_of(loss)
    found = gradients(learner, samples)
    assert_same(found, written_out(learner, sides, of))


@pytest.mark.parametrize(("loss", "of"), WRITTEN_OUT, ids=["dpo", "ipo"])
def test_the_slope_is_the_derivative_of_the_loss_of_a_pair_at_any_margin(loss: PairLoss, of):
    for margin in (-1e5, -3.0, 0.0, 0.7, 2.5, 1e5):
        h = torch.tensor(margin, dtype=torch.float64, requires_grad=True)
        (expected,) = torch.autograd.grad(of(h), h)
        assert loss.slope(margin) == pytest.approx(expected.item(), abs=1e-12)


def test_an_update_raises_the_margin_of_what_is_preferred():
    learner, samples = learner_of(DPO(), lr=3e-3, warmup_steps=0, epochs=10, batch_samples=4), some_pairs()
    reference = tiny_model(VOCABULARY, seed=1).double()

    def margins() -> list[float]:
        of = lambda s: log_ratio(learner.model, reference, [s]).item()  # noqa: E731
        return [of(samples[k]) - of(samples[k + 1]) for k in (0, 2, 4)]

    before = margins()
    learner.update(samples, random.Random(0))
    assert all(after > first for after, first in zip(margins(), before, strict=True))


STEPS: list[list[int]] = []
"""Pairs of the samples of each optimiser step."""


class Watched(DPO):
    """DPO that keeps which pairs its steps hold."""

    def reweigh(self, samples: Sequence[Sample], logprobs: Sequence[Sequence[float]]) -> list[Sample]:
        STEPS.append(sorted(s.pair for s in samples))
        return super().reweigh(samples, logprobs)


def test_the_samples_of_a_pair_are_in_one_optimiser_step_wherever_they_stand():
    samples = random_samples(16)
    pairs = [pair(samples[k], samples[k + 8], number=k) for k in range(8)]
    apart = [one for one, _ in pairs] + [other for _, other in reversed(pairs)]
    STEPS.clear()
    found = learner_of(Watched(), batch_samples=4, epochs=2).update(apart, random.Random(0))
    assert found["steps"] == len(STEPS) == 8
    assert all(step[::2] == step[1::2] and len(step) == 4 for step in STEPS)
    assert sorted(n for step in STEPS for n in step) == sorted([*range(8)] * 4)


def test_a_pair_loss_needs_a_reference_and_the_log_probabilities_of_each_step():
    assert DPO().depends_on_policy and DPO().needs == IPO(kl=KL()).needs == {REFERENCE}
    with pytest.raises(ConfigError, match="loss dpo needs a reference policy"):
        learner = Learner(tiny_model(VOCABULARY), LearnerConfig())
        learner.loss = DPO()
        learner.update(some_pairs(), random.Random(0))


def test_a_sample_without_a_partner_is_refused():
    learner, samples = learner_of(DPO()), some_pairs()
    with pytest.raises(ConfigError, match="loss dpo compares pairs; a side of a pair is missing from its step"):
        learner.update(samples[:-1], random.Random(0))
    with pytest.raises(ConfigError, match="loss dpo compares pairs; the credit made a sample that is in none"):
        learner.update([*samples, *random_samples(1)], random.Random(0))


@pytest.mark.parametrize("loss", [DPO(beta=0.5), IPO(tau=2.0)])
def test_it_is_built_again_from_its_data(loss: PairLoss):
    assert build(Loss, loss.as_data()) == loss

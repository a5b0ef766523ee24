"""The loss of an optimiser step: what the learner computes is what is written out by hand, however the step is cut."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from by_hand import (
    VOCABULARY,
    Bare,
    assert_same,
    growing_group,
    logprobs,
    random_samples,
    step_of,
    step_of_learner,
)
from estimators import AGGREGATIONS, LOSSES, Table, table_learner
from helpers import tiny_model

from longstride.learner.batching import StreamTable, micro_batch, rows_of
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.learner.likelihood import log_likelihood, split_head
from longstride.methods import KL, PPO, Loss, Reinforce, Sample, demonstration
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, PROXIMAL, REFERENCE

every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def with_all_streams(samples: list[Sample], seed: int = 0) -> list[Sample]:
    """Copies with log-probabilities of an older start and of a reference, near those of the sampler."""
    rng, found = np.random.default_rng(seed), []
    for s in samples:
        old = np.array(s.streams[BEHAVIOUR])
        made = {name: (old + rng.normal(scale=0.2, size=len(old))).tolist() for name in (PROXIMAL, REFERENCE)}
        found.append(Sample(s.prompt_ids, s.sampled_ids, s.streams | made, s.episode, s.group, s.turn))
    return found


def drifted(seed: int = 0, vocabulary: int = 6) -> tuple[np.ndarray, list[Sample]]:
    """A table, and samples of an older policy with an advantage each; some prompts go on where a sample ended."""
    rng = np.random.default_rng(seed)
    logits, found = rng.normal(size=(vocabulary, vocabulary)), []
    for n in range(12):
        prompt = rng.integers(vocabulary, size=rng.integers(1, 4)).tolist()
        for turn in range(rng.integers(1, 4)):
            ids = rng.integers(vocabulary, size=rng.integers(1, 6)).tolist()
            advantages = [float(rng.normal())] * len(ids)
            s = Sample(list(prompt), ids, {ADVANTAGES: advantages, BEHAVIOUR: [0.0] * len(ids)}, n, n // 3, turn)
            now = logprobs(Table(logits), s).detach().numpy()
            s.streams[BEHAVIOUR] = (now + rng.normal(scale=0.3, size=len(ids))).tolist()
            found.append(s)
            prompt = prompt + ids + rng.integers(vocabulary, size=2).tolist()
    return logits, with_all_streams(found)


@pytest.mark.parametrize("micro_tokens", [1, 60, 10_000])
@every_loss
def test_a_step_of_a_transformer_is_the_one_written_out(loss: Loss, micro_tokens: int):
    """With a KL term and the entropy bonus, in any order, whatever rows share."""
    samples = with_all_streams(growing_group(prompt=20)) + with_all_streams(random_samples(3))
    loss, model = loss.replace(kl=KL(coefficient=0.3, estimator="k2"), entropy=0.1), tiny_model(VOCABULARY).double()
    expected = step_of(model, samples, loss)
    assert {"tokens", "kl", "entropy"} <= expected[1].keys()
    learner = Learner(model, LearnerConfig(dtype="float32", micro_tokens=micro_tokens), loss, tiny_model(VOCABULARY))
    assert_same(step_of_learner(learner, samples[::-1]), expected)


@pytest.mark.parametrize("aggregation", AGGREGATIONS.values(), ids=AGGREGATIONS)
@every_loss
def test_a_step_under_every_aggregation_is_the_one_written_out(loss: Loss, aggregation):
    logits, samples = drifted()
    loss = loss.replace(aggregation=aggregation)
    expected = step_of(Table(logits), samples, loss)
    assert expected[2]["logits"].abs().max() > 1e-3
    for order, micro_tokens in ((samples, 1), (samples, 40), (samples[::-1], 8192)):
        assert_same(step_of_learner(table_learner(logits, loss, micro_tokens=micro_tokens), order), expected)


def test_the_ratio_is_reported_over_all_tokens_of_a_step():
    for seed in range(3):
        logits, samples = drifted(seed)
        found = table_learner(logits, PPO(), micro_tokens=1).accumulate(samples)[1]
        log_ratio = np.concatenate(
            [logprobs(Table(logits), s).detach().numpy() - np.array(s.streams[BEHAVIOUR]) for s in samples]
        )
        advantages = np.concatenate([s.advantages for s in samples])
        clipped = np.where(advantages > 0, log_ratio > np.log(1.2), log_ratio < np.log(0.8))
        assert 0 < clipped.mean() < 1
        assert found == pytest.approx({
            "tokens": len(advantages), "clip_fraction": clipped.mean(), "ratio_max": np.exp(log_ratio.max()),
            "approx_kl": (np.exp(log_ratio) - 1 - log_ratio).mean(),
        }, abs=1e-5)  # fmt: skip
    assert table_learner(logits, Reinforce()).accumulate(samples)[1].keys() == {"tokens"}


def test_a_sample_without_advantages_trains_nothing_and_still_counts_in_the_mean():
    samples = random_samples(4)
    silent = Sample([1, 2, 3], [4, 5], {ADVANTAGES: [0.0, 0.0]})
    model = tiny_model(VOCABULARY)
    learner = Learner(model, LearnerConfig(dtype="float32"))
    loss, metrics, gradients = step_of(model, samples, Reinforce())
    expected = loss * 4 / 5, metrics, {name: g * 4 / 5 for name, g in gradients.items()}
    assert_same(step_of_learner(learner, [*samples, silent]), expected)


def test_bfloat16_gives_nearly_the_loss_of_float32():
    model, samples = tiny_model(VOCABULARY), random_samples(20)
    expected = step_of(model, samples, Reinforce())[0]
    found = Learner(model, LearnerConfig(dtype="bfloat16")).accumulate(samples)[0]
    assert found != expected and found == pytest.approx(expected, rel=2e-2)


def test_logits_of_gathered_places_agree_with_those_of_a_model_that_gives_all():
    samples, model = random_samples(6), tiny_model(VOCABULARY)
    table = StreamTable(samples)
    batch = micro_batch(rows_of(samples, table), table)
    with torch.no_grad():
        split = split_head(model)
        assert split and split_head(Bare(model)) is None
        torch.testing.assert_close(
            log_likelihood(Bare(model), batch, None), log_likelihood(model, batch, split), rtol=0, atol=1e-5
        )


def test_a_model_that_changes_its_logits_behind_the_head_is_not_split():
    model = tiny_model(VOCABULARY)
    model.register_forward_hook(lambda module, args, out: SimpleNamespace(logits=out.logits / 2))
    assert split_head(model) is None
    loss, _ = Learner(model, LearnerConfig(dtype="float32")).accumulate([demonstration([1, 2], [3])])
    expected = -model(torch.tensor([[1, 2]])).logits[0, -1].log_softmax(-1)[3].item()
    assert loss == pytest.approx(expected, abs=1e-6)

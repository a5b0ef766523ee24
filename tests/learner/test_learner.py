"""The learner: updates, its schedule, its state, what it does with a bad gradient, and what it reads of the policy."""

import json
import math
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from by_hand import VOCABULARY, Bare, growing_group, logprobs, random_samples
from helpers import tiny_model

from longstride.core.errors import ConfigError, ModelError, RunError
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import PATIENCE, Learner
from longstride.learner.threads import shared_out
from longstride.methods import KL, PPO, ImportanceCorrection, Loss, Reinforce, demonstration
from longstride.methods.base import ADVANTAGES, PROXIMAL


def learner_of(loss: Loss | None = None, model: Any = None, **numbers: Any) -> Learner:
    return Learner(model or tiny_model(VOCABULARY), LearnerConfig(dtype="float32", **numbers), loss)


# Updates


def test_an_update_learns_what_it_is_given():
    learner = learner_of(lr=1e-2, warmup_steps=0, batch_samples=8, epochs=30)
    samples, seen = random_samples(8), []
    before = learner.accumulate(samples)[0]
    found = learner.update(samples, random.Random(0), lambda done, total: seen.append((done, total)))
    assert learner.accumulate(samples)[0] < before / 4
    assert seen[-1] == (30, 30)
    assert (found["steps"], found["trained_turns"], found["skipped"]) == (30, 240, 0)
    assert found["trained_tokens"] == 30 * sum(len(s.sampled_ids) for s in samples)


def test_a_target_is_learned_in_the_place_of_what_stands_there_and_is_read():
    """The loss is that of the targets, each after what was said; hence that of the targets is what falls."""
    (said,) = random_samples(1)
    wanted = replace(said, targets=[(i + 1) % VOCABULARY for i in said.sampled_ids])
    learner = learner_of(lr=1e-2, warmup_steps=0, epochs=30)
    ids = torch.tensor([said.prompt_ids + said.sampled_ids])
    logp_T_V = learner.model(ids).logits[0, len(said.prompt_ids) - 1 : -1].log_softmax(-1)
    by_hand = -(logp_T_V.gather(1, torch.tensor(wanted.targets)[:, None])[:, 0] * torch.tensor(said.advantages)).sum()
    assert learner.accumulate([wanted])[0] == pytest.approx(by_hand.item(), rel=1e-5)
    ones = replace(wanted, streams={ADVANTAGES: [1.0] * len(said.sampled_ids)})
    learner.update([ones], random.Random(0))
    assert learner.accumulate([ones])[0] < 0.2 * len(said.sampled_ids)
    with pytest.raises(ValueError, match="1 targets for"):
        replace(said, targets=[1], sampled_ids=[1, 2], streams={ADVANTAGES: [1.0, 1.0]})


@pytest.mark.parametrize("loss", [Reinforce(), PPO(kl=KL(), correction=ImportanceCorrection())])
def test_an_update_without_samples_changes_nothing(loss: Loss):
    learner = learner_of(loss)
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    found = learner.update([], random.Random(0))
    assert (found["steps"], found["loss"], found["trained_tokens"]) == (0, 0.0, 0)
    assert all(torch.equal(value, before[name]) for name, value in learner.model.state_dict().items())


def test_the_learning_rate_warms_up_linearly_and_falls_along_a_cosine():
    learner = learner_of(lr=1.0, warmup_steps=4, decay_steps=14, min_lr_ratio=0.2)
    assert [learner.lr(k) for k in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert learner.lr(4) == pytest.approx(1.0)
    assert learner.lr(9) == pytest.approx(0.6)
    assert learner.lr(14) == learner.lr(1000) == pytest.approx(0.2)
    assert learner_of(lr=1.0, warmup_steps=0).lr(1000) == 1.0


# State


def test_a_learner_restored_from_its_state_takes_the_same_steps():
    numbers: dict[str, Any] = {"batch_samples": 4, "warmup_steps": 3, "decay_steps": 20}
    samples = random_samples(24)
    one = learner_of(**numbers)
    one.update(samples[:12], random.Random(1))
    other = learner_of(model=tiny_model(VOCABULARY, seed=5), **numbers)
    other.model.load_state_dict(one.model.state_dict())
    tensors, counters = one.state()
    other.load_state({k: t.clone() for k, t in tensors.items()}, json.loads(json.dumps(counters)))
    for learner in (one, other):
        learner.update(samples[12:], random.Random(2))
    assert one.steps == other.steps == 6
    assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True))


def test_optimiser_state_of_another_model_is_refused():
    learner = learner_of()
    learner.step(random_samples(2))
    tensors, counters = learner.state()
    name = next(k for k in tensors if k.startswith("exp_avg/"))
    with pytest.raises(RunError, match="another model"):
        learner.load_state({**tensors, "exp_avg/nothing": tensors[name]}, counters)
    with pytest.raises(RunError, match="another model"):
        learner.load_state({**tensors, name: tensors[name][:1]}, counters)
    with pytest.raises(RunError, match="damaged"):
        learner.load_state(tensors, {})


# Bad gradients


def test_a_step_without_a_finite_gradient_changes_nothing_and_is_counted():
    learner = learner_of()
    learner.step(random_samples(2))
    before = [p.clone() for p in learner.model.parameters()]
    found = learner.update([demonstration([1, 2], [3], math.inf)], random.Random(0))
    assert (found["skipped"], learner.skipped) == (1, 1)
    assert all(torch.equal(a, b) for a, b in zip(before, learner.model.parameters(), strict=True))
    learner.step(random_samples(2))
    assert all(torch.isfinite(p).all() for p in learner.model.parameters())


def test_ten_bad_steps_in_a_row_end_the_training_with_advice():
    learner = learner_of()
    bad = [demonstration([1, 2], [3], math.nan)]
    for _ in range(PATIENCE - 1):
        learner.step(bad)
    learner.step(random_samples(1))  # a good one in between starts the count anew
    for _ in range(PATIENCE - 1):
        learner.step(bad)
    with pytest.raises(RunError, match=r"learner\.lr"):
        learner.step(bad)


# What is read of the policy


def test_log_probabilities_are_those_of_every_sampled_token_also_of_tokens_that_are_not_trained():
    learner, samples = learner_of(micro_tokens=100), growing_group()
    assert not all(a for s in samples for a in s.advantages)
    for s, found in zip(samples, learner.logprobs(samples), strict=True):
        torch.testing.assert_close(torch.tensor(found), logprobs(learner.model, s).detach(), rtol=0, atol=1e-5)
    assert learner.logprobs([]) == []


def test_a_stream_that_neither_the_credit_gives_nor_the_learner_can_make_is_refused():
    class NeedsMargins(Reinforce):
        @property
        def needs(self) -> frozenset[str]:
            return super().needs | {"margin", PROXIMAL}

    given = [replace(s, streams=s.streams | {"margin": [0.0] * len(s.sampled_ids)}) for s in random_samples(2)]
    learner = learner_of(NeedsMargins())
    for s in learner.with_streams(given, learner.loss.needs):
        torch.testing.assert_close(
            torch.tensor(s.streams[PROXIMAL]), logprobs(learner.model, s).detach(), rtol=0, atol=1e-5
        )
    with pytest.raises(ConfigError, match="loss needs_margins needs the stream 'margin', which the credit does not"):
        learner.update([*given, *random_samples(1)], random.Random(0))


def test_features_are_the_last_hidden_states_before_the_tokens_that_have_an_advantage():
    model, samples = tiny_model(VOCABULARY), growing_group()
    first = [replace(s, streams={ADVANTAGES: [1.0] + [0.0] * (len(s.sampled_ids) - 1)}) for s in samples]
    found = learner_of(Reinforce(kl=KL()), model, micro_tokens=100).features(first)
    for s, feature in zip(samples, found, strict=True):
        state = model(torch.tensor([s.prompt_ids]), output_hidden_states=True).hidden_states[-1][0, -1]
        torch.testing.assert_close(feature, state.detach(), rtol=0, atol=1e-5)
    assert not found.requires_grad and found.dtype == torch.float32
    with pytest.raises(ModelError, match="Bare has no `get_decoder`"):
        learner_of(model=Bare(model)).features(first)


def test_threads_that_share_a_step_leave_the_number_that_torch_uses():
    def number_of_a_new_thread() -> int:
        with ThreadPoolExecutor(1) as one:
            return one.submit(torch.get_num_threads).result()

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        crew: Any = [SimpleNamespace(model=tiny_model(VOCABULARY)) for _ in range(2)]
        assert shared_out(lambda likelihood, share: [torch.get_num_threads()], crew, []) == [1, 1]
        assert torch.get_num_threads() == number_of_a_new_thread() == 2
    finally:
        torch.set_num_threads(before)

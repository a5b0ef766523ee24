"""The reference policy of a KL term: where it stands, how an anchor moves it, and how a run goes on with it."""

import random
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
import torch
from by_hand import VOCABULARY, growing_group, logprobs
from families import make
from helpers import tiny_model

from longstride.core.errors import ConfigError, RunError
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.methods import KL, PPO, Anchor, Loss, Reinforce, Start, demonstration
from longstride.methods.base import REFERENCE
from longstride.methods.kl import Latest, MovingAverage
from longstride.models.lora import LoRA

FAST: dict[str, Any] = {"lr": 1e-2, "warmup_steps": 0, "batch_samples": 100}


def learner_of(loss: Loss, model: Any = None, reference: Any = None, **numbers: Any) -> Learner:
    return Learner(model or tiny_model(VOCABULARY), LearnerConfig(dtype="float32", **numbers), loss, reference)


def held(anchor: Anchor | None = None, coefficient: float = 0.5) -> Reinforce:
    return Reinforce(kl=KL(coefficient=coefficient, anchor=anchor or Start()))


def distance(learner: Learner) -> float:
    """Mean k3 of the policy from its reference."""
    return learner.step(list(learner.with_streams(growing_group(), [REFERENCE])))["kl"]


def test_an_update_holds_on_to_where_the_learner_started():
    samples, start = growing_group(), tiny_model(VOCABULARY)
    one, other = (learner_of(held(), epochs=2, **FAST) for _ in range(2))
    assert one.update(samples, random.Random(0))["kl"] > 0
    by_hand = [replace(s, streams=s.streams | {REFERENCE: logprobs(start, s).tolist()}) for s in samples]
    assert other.step(by_hand)["kl"] == pytest.approx(0, abs=1e-6)
    assert other.step(by_hand)["kl"] > 0
    for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-3)


def test_a_learner_that_goes_on_with_a_given_reference_gets_the_same_numbers():
    samples, start = growing_group(), tiny_model(VOCABULARY)
    one = learner_of(held(), **FAST)
    one.update(samples, random.Random(0))
    other = learner_of(held(), deepcopy(one.model), start, **FAST)
    other.load_state(*one.state())
    assert one.update(samples, random.Random(1)) == other.update(samples, random.Random(1))
    unchanged = zip(start.parameters(), tiny_model(VOCABULARY).parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in unchanged)


def test_a_strong_kl_term_keeps_the_policy_where_it_was():
    free, pinned = (learner_of(held(coefficient=c), epochs=20, **FAST) for c in (0.0, 10.0))
    ends = [learner.update(growing_group(), random.Random(0))["kl"] for learner in (free, pinned)]
    assert ends[1] < ends[0] / 10


@pytest.mark.parametrize("family", ["Mamba", "Qwen3-Next", "Gemma 2"])
def test_a_teacher_of_another_architecture_reads_samples_as_it_takes_them(family: str) -> None:
    """Siblings behind one prompt, which stand in one row where the policy reads them."""
    rng, teacher = random.Random(0), make(family)
    prompt = [rng.randrange(5, 64) for _ in range(40)]
    samples = [demonstration(prompt, [rng.randrange(5, 64) for _ in range(8)], episode=n) for n in range(4)]
    learner = learner_of(held(), make("Qwen2, Qwen2.5"), deepcopy(teacher))
    assert learner._likelihood.trees and not learner._held[REFERENCE].trees
    for sample, values in zip(samples, learner.with_streams(samples, [REFERENCE]), strict=True):
        alone = Learner(teacher, LearnerConfig(dtype="float32")).logprobs([sample])[0]
        assert values.streams[REFERENCE] == pytest.approx(alone, abs=1e-4)


def test_a_sample_without_a_prompt_is_refused() -> None:
    with pytest.raises(ValueError, match="a sample has no prompt"):
        learner_of(held()).logprobs([demonstration([], [5, 6, 7])])


def test_a_reference_has_its_own_attention_after_it_was_read() -> None:
    reference = make("Qwen2, Qwen2.5")
    usual = reference.config._attn_implementation
    learner_of(held(), make("Qwen2, Qwen2.5"), reference).with_streams(growing_group(), [REFERENCE])
    assert reference.config._attn_implementation == usual


def test_with_adapters_the_reference_is_the_model_without_them():
    pytest.importorskip("peft")
    learner = learner_of(held(), lora=LoRA(rank=2), **(FAST | {"lr": 1e-1}))
    first, second = (learner.update(growing_group(), random.Random(0))["kl"] for _ in range(2))
    assert first == pytest.approx(0, abs=1e-6) and second > 1e-3
    start = tiny_model(VOCABULARY)
    for s in learner.with_streams(growing_group(), [REFERENCE]):
        found = torch.tensor(s.streams[REFERENCE])
        torch.testing.assert_close(found, logprobs(start, s).detach(), rtol=0, atol=1e-5)
    assert all(p.requires_grad for p in learner.parameters.values())


def test_a_kl_term_that_comes_later_needs_a_reference():
    learner = learner_of(PPO())
    learner.loss = PPO(kl=KL())
    with pytest.raises(ConfigError, match="loss ppo needs a reference policy.*give the learner a reference"):
        learner.update(growing_group(), random.Random(0))


# Anchors


def moved(anchor: Anchor, iterations: int) -> tuple[Learner, list[dict[str, torch.Tensor]]]:
    """A learner after so many iterations, and the policy before the first and after each."""
    learner = learner_of(held(anchor), reference=tiny_model(VOCABULARY), **FAST)
    policies = [deepcopy(learner.model.state_dict())]
    for i in range(1, iterations + 1):
        learner.update(growing_group(i), random.Random(i))
        learner.move_reference(i)
        policies.append(deepcopy(learner.model.state_dict()))
    return learner, policies


def reference_of(learner: Learner) -> dict[str, torch.Tensor]:
    tensors, _ = learner.state()
    return {name.removeprefix("reference/"): t for name, t in tensors.items() if name.startswith("reference/")}


def test_under_start_the_reference_never_moves_and_is_no_part_of_the_state():
    learner, _ = moved(Start(), 2)
    assert reference_of(learner) == {}
    assert distance(learner) > 1e-4


def test_a_moving_average_follows_the_policy_by_a_share_of_the_way():
    learner, policies = moved(MovingAverage(decay=0.75), 2)
    for name, found in reference_of(learner).items():
        expected = 0.75 * (0.75 * policies[0][name] + 0.25 * policies[1][name]) + 0.25 * policies[2][name]
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_latest_is_the_policy_at_the_start_of_each_phase():
    learner, policies = moved(Latest(every=2), 3)
    found = reference_of(learner)
    assert found and all(torch.equal(value, policies[2][name]) for name, value in found.items())
    fresh, _ = moved(Latest(every=2), 2)
    assert distance(fresh) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("anchor", [MovingAverage(decay=0.5), Latest(every=2)])
def test_a_reference_that_moved_is_restored_from_the_state(anchor: Anchor):
    one, _ = moved(anchor, 3)
    other = learner_of(held(anchor), deepcopy(one.model), tiny_model(VOCABULARY), **FAST)
    other.load_state(*one.state())
    for i in (4, 5):
        found = [learner.update(growing_group(i), random.Random(i)) for learner in (one, other)]
        assert found[0] == found[1] and (found[0]["kl"] > 0 or i == 5)  # after 4 the latest is the policy itself
        for learner in (one, other):
            learner.move_reference(i)
    assert all(torch.equal(a, reference_of(other)[name]) for name, a in reference_of(one).items())


def test_a_reference_in_the_state_needs_a_learner_that_has_one():
    one, _ = moved(MovingAverage(decay=0.5), 1)
    with pytest.raises(RunError, match="has a reference policy, and this learner has none"):
        learner_of(Reinforce()).load_state(*one.state())


def test_with_adapters_an_anchor_that_moves_is_refused():
    pytest.importorskip("peft")
    learner = learner_of(held(MovingAverage()), lora=LoRA(rank=2))
    with pytest.raises(ConfigError, match="leave out the anchor, or train the weights"):
        learner.move_reference(1)
    learner_of(held(Start()), lora=LoRA(rank=2)).move_reference(1)

"""The learner: its loss, that packing does not change it, its schedule, its state, and what it does with a bad
gradient."""

import json
import math
import random
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from longstride.core.errors import ConfigError, ModelError, RunError
from longstride.learner.batching import chains, micro_batches, row_of, steps_of
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import PATIENCE, Learner
from longstride.learner.likelihood import log_likelihood, split_head
from longstride.methods import GSPO, KL, PPO, Correction, Loss, Reinforce, base
from longstride.models.adapters import LoRA

VOCABULARY = 50


@dataclass
class Sample:
    """Stands for `methods.base.Sample`."""

    prompt_ids: list[int]
    sampled_ids: list[int]
    weights: list[float] = field(default_factory=list)
    prompt_from: int = 0

    def __post_init__(self) -> None:
        self.weights = self.weights or [1 / len(self.sampled_ids)] * len(self.sampled_ids)


class Bare(nn.Module):
    """A model without `get_decoder`: all that the learner may ask of it is logits."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: torch.Tensor):
        return self.inner(input_ids)


def tiny_model(seed: int = 0) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=128, tie_word_embeddings=True,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def make_samples(n: int, seed: int = 1) -> list[Sample]:
    rng = random.Random(seed)
    ids = lambda lo, hi: [rng.randrange(VOCABULARY) for _ in range(rng.randint(lo, hi))]  # noqa: E731
    return [Sample(ids(1, 30), ids(1, 6)) for _ in range(n)]


def fp32(**numbers) -> LearnerConfig:
    return LearnerConfig(dtype="float32", **numbers)


def gradients(samples, config=None, model=None, prompt_weight=0.0) -> tuple[float, dict[str, torch.Tensor]]:
    learner = Learner(model or tiny_model(), config or fp32())
    loss, _ = learner.accumulate(samples, prompt_weight)
    return loss, {name: p.grad for name, p in learner.parameters.items() if p.grad is not None}


def assert_same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor], tolerance: float = 1e-6) -> None:
    assert a.keys() == b.keys()
    assert max((a[k] - b[k]).abs().max().item() for k in a) < tolerance


def test_the_loss_is_the_weighted_log_likelihood_of_sampled_tokens_over_the_number_of_samples():
    samples, model = make_samples(5), tiny_model()
    expected = 0.0
    with torch.no_grad():
        for s in samples:
            logp = model(torch.tensor([s.prompt_ids + s.sampled_ids])).logits[0].log_softmax(-1)
            for k, (token, w) in enumerate(zip(s.sampled_ids, s.weights, strict=True), len(s.prompt_ids)):
                expected -= w * logp[k - 1, token].item() / len(samples)
    assert gradients(samples, model=model)[0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("micro_tokens", [1, 100, 100_000])
def test_the_gradient_does_not_depend_on_how_a_step_is_cut_into_micro_batches(micro_tokens):
    samples = make_samples(20)
    loss, reference = gradients(samples, fp32(micro_tokens=300))
    other, found = gradients(samples, fp32(micro_tokens=micro_tokens))
    assert other == pytest.approx(loss, abs=1e-6)
    assert_same(found, reference)


def test_the_gradient_does_not_depend_on_the_order_of_the_samples():
    samples = make_samples(20)
    assert_same(gradients(samples[::-1])[1], gradients(samples)[1])


def test_a_sample_without_weight_trains_nothing_and_still_counts_in_the_mean():
    samples = make_samples(4)
    silent = Sample([1, 2, 3], [4, 5], [0.0, 0.0])
    loss, reference = gradients(samples)
    found = gradients([*samples, silent])
    assert found[0] == pytest.approx(loss * 4 / 5, abs=1e-6)
    assert_same(found[1], {k: g * 4 / 5 for k, g in reference.items()})


def test_logits_of_gathered_places_agree_with_a_model_that_only_gives_all_logits():
    samples, model = make_samples(6), tiny_model()
    (batch,) = micro_batches([row_of([s]) for s in samples], 10_000)
    with torch.no_grad():
        split = split_head(model)
        assert split and split_head(Bare(model)) is None
        torch.testing.assert_close(log_likelihood(Bare(model), batch, None), log_likelihood(model, batch, split))


def test_a_model_that_changes_its_logits_behind_the_head_is_not_split():
    model = tiny_model()
    model.register_forward_hook(lambda module, args, out: setattr(out, "logits", out.logits / 2))
    assert split_head(model) is None
    learner = Learner(model, fp32())
    loss, _ = learner.accumulate([Sample([1, 2], [3], [1.0])])
    expected = -model(torch.tensor([[1, 2]])).logits[0, -1].log_softmax(-1)[3].item()
    assert loss == pytest.approx(expected, abs=1e-6)


def test_a_micro_batch_holds_at_most_the_tokens_asked_for_unless_one_row_is_longer():
    batches = micro_batches([row_of([s]) for s in make_samples(50)], 64)
    assert all(b.ids_B_L.numel() <= 64 or len(b.ids_B_L) == 1 for b in batches)
    assert len(batches) < 50


def test_what_stands_after_the_last_trained_token_is_not_computed():
    (batch,) = micro_batches([row_of([Sample([1, 2], [3, 4, 5, 6], [1.0, 0.0, 0.0, 0.0])])], 100)
    assert batch.ids_B_L.tolist() == [[1, 2, 3]] and batch.target_P.tolist() == [3]


def test_prompt_weight_trains_the_newest_observation_with_the_mean_of_its_tokens():
    row = row_of([Sample([9, 8, 7, 6], [1, 2], prompt_from=2)], prompt_weight=0.5)
    assert [(e.at, e.target, e.weight) for e in row.entries] == [(1, 7, 0.25), (2, 6, 0.25), (3, 1, 0.5), (4, 2, 0.5)]
    (first, *_) = row_of([Sample([9, 8], [1], prompt_from=0)], prompt_weight=1.0).entries
    assert first.at == 0  # nothing predicts the first token
    assert len(row_of([Sample([9, 8, 7, 6], [1, 2], prompt_from=2)]).entries) == 2


def growing(turns: int) -> list[Sample]:
    """An episode whose context only grows: each prompt goes on where the turn before ended."""
    ids, out = [1, 2, 3], []
    for t in range(turns):
        said = [4 + t, 5]
        out.append(Sample(list(ids), said, [0.5, 0.5], prompt_from=len(ids) - 2))
        ids = ids + said + [6, 7 + t]
    return out


@pytest.mark.parametrize("prompt_weight", [0.0, 0.5])
def test_turns_that_share_a_growing_prompt_are_one_row_with_the_gradient_of_single_rows(prompt_weight):
    episode = growing(4)
    assert [len(c) for c in chains(episode + growing(3))] == [4, 3]
    assert [len(c) for c in chains(episode[::-1])] == [1, 1, 1, 1]
    together = gradients(episode, prompt_weight=prompt_weight)
    apart = gradients(episode[::-1], prompt_weight=prompt_weight)
    assert together[0] == pytest.approx(apart[0], abs=1e-6)
    assert_same(together[1], apart[1])
    rows = [row_of(c) for c in chains(episode)]
    assert len(rows) == 1 and len(rows[0].entries) == 8


def test_steps_are_cut_evenly_and_never_through_a_chain():
    assert [len(part) for part in steps_of([[k] for k in range(10)], 4)] == [3, 4, 3]
    assert steps_of([[1, 2, 3], [4, 5, 6], [7]], 4) == [[1, 2, 3], [4, 5, 6, 7]]
    assert steps_of([], 4) == []


def test_an_update_learns_what_it_is_given():
    learner = Learner(tiny_model(), fp32(lr=1e-2, warmup_steps=0, batch_samples=8, epochs=30))
    samples = make_samples(8)
    first = gradients(samples)[0]
    seen = []
    out = learner.update(samples, random.Random(0), lambda done, total: seen.append((done, total)))
    assert gradients(samples, model=learner.model)[0] < first / 4
    assert seen[-1] == (30, 30)
    assert (out["steps"], out["trained_turns"], out["skipped"]) == (30, 240, 0)
    assert out["trained_tokens"] == 30 * sum(len(s.sampled_ids) for s in samples)


@pytest.mark.parametrize("loss", [Reinforce(), PPO(kl=KL(), correction=Correction())])
def test_an_update_without_samples_changes_nothing(loss):
    learner = Learner(tiny_model(), fp32(), loss)
    before = {k: v.clone() for k, v in learner.model.state_dict().items()}
    out = learner.update([], random.Random(0))
    assert (out["steps"], out["loss"], out["trained_tokens"]) == (0, 0.0, 0)
    assert all(torch.equal(v, before[k]) for k, v in learner.model.state_dict().items())


def test_bfloat16_gives_nearly_the_loss_of_float32():
    samples = make_samples(20)
    assert gradients(samples, LearnerConfig())[0] == pytest.approx(gradients(samples)[0], rel=1e-2)


def test_the_learning_rate_warms_up_linearly_and_falls_along_a_cosine():
    learner = Learner(tiny_model(), fp32(lr=1.0, warmup_steps=4, decay_steps=14, min_lr_ratio=0.2))
    assert [learner.lr(k) for k in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert learner.lr(4) == pytest.approx(1.0)
    assert learner.lr(9) == pytest.approx(0.6)
    assert learner.lr(14) == learner.lr(1000) == pytest.approx(0.2)
    assert Learner(tiny_model(), fp32(lr=1.0, warmup_steps=0)).lr(1000) == 1.0


def test_a_learner_restored_from_its_state_takes_the_same_steps():
    config, samples = fp32(batch_samples=4, warmup_steps=3, decay_steps=20), make_samples(24)
    one = Learner(tiny_model(), config)
    one.update(samples[:12], random.Random(1))
    other = Learner(tiny_model(seed=5), config)
    other.model.load_state_dict(one.model.state_dict())
    tensors, numbers = one.state()
    other.load_state({k: t.clone() for k, t in tensors.items()}, json.loads(json.dumps(numbers)))
    for learner in (one, other):
        learner.update(samples[12:], random.Random(2))
    assert one.steps == other.steps == 6
    assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True))


def test_optimiser_state_of_another_model_is_refused():
    learner = Learner(tiny_model(), fp32())
    learner.step(make_samples(2))
    tensors, numbers = learner.state()
    name = next(k for k in tensors if k.startswith("exp_avg/"))
    with pytest.raises(RunError, match="another model"):
        learner.load_state({**tensors, "exp_avg/nothing": tensors[name]}, numbers)
    with pytest.raises(RunError, match="another model"):
        learner.load_state({**tensors, name: tensors[name][:1]}, numbers)
    with pytest.raises(RunError, match="damaged"):
        learner.load_state(tensors, {})


def test_a_step_without_a_finite_gradient_changes_nothing_and_is_counted():
    learner = Learner(tiny_model(), fp32())
    learner.step(make_samples(2))
    before = [p.clone() for p in learner.model.parameters()]
    out = learner.update([Sample([1, 2], [3], [math.inf])], random.Random(0))
    assert (out["skipped"], learner.skipped) == (1, 1)
    assert all(torch.equal(a, b) for a, b in zip(before, learner.model.parameters(), strict=True))
    learner.step(make_samples(2))
    assert all(torch.isfinite(p).all() for p in learner.model.parameters())


def test_ten_bad_steps_in_a_row_end_the_training_with_advice():
    learner = Learner(tiny_model(), fp32())
    bad = [Sample([1, 2], [3], [math.nan])]
    for _ in range(PATIENCE - 1):
        learner.step(bad)
    learner.step(make_samples(1))  # a good one in between starts the count anew
    for _ in range(PATIENCE - 1):
        learner.step(bad)
    with pytest.raises(RunError, match=r"learner\.lr"):
        learner.step(bad)


def family(seed: int = 0) -> list[base.Sample]:
    """Siblings of two turns that share a prompt, the first of them without an advantage."""
    rng = random.Random(seed)
    ids = lambda n: [rng.randrange(VOCABULARY) for _ in range(n)]  # noqa: E731
    prompt, out = ids(30), []
    for episode in range(4):
        context = list(prompt)
        for turn in range(2):
            said = ids(rng.randint(1, 5))
            weights, old = [turn * rng.choice([-1.0, 1.0])] * len(said), [-rng.uniform(3.5, 4.2) for _ in said]
            out.append(base.Sample(context, said, weights, old, episode, 0, turn))
            context = context + said + ids(4)
    return out


def logps(model: nn.Module, s: base.Sample) -> torch.Tensor:
    ids = torch.tensor([s.prompt_ids + s.sampled_ids])
    every = model(ids).logits[0, len(s.prompt_ids) - 1 : -1].log_softmax(-1)
    return every.gather(1, ids[0, len(s.prompt_ids) :, None])[:, 0]


class Apart(Learner):
    """One row a sample."""

    def _rows(self, samples, shares=(), prompt_weight=0.0):
        penalties = self.loss.penalties(samples)
        return [row_of([s], 0.0, shares[n : n + 1], n, penalties[n : n + 1]) for n, s in enumerate(samples)]


def held(kl: KL, loss: Loss | None = None) -> Loss:
    return (loss or Reinforce()).model_copy(update={"kl": kl})


def test_a_penalty_is_that_of_every_sampled_token_also_where_there_is_no_advantage():
    model, other, samples = tiny_model().double(), tiny_model(seed=1).double(), family()
    kl = KL(estimator="k2", by_turn=(0.5, 0.1))
    learner = Learner(model, fp32(), held(kl), deepcopy(other))
    loss, told = learner.accumulate(learner._with_reference(samples))
    expected, k3 = torch.zeros(()), []
    for s in samples:
        policy, reference = logps(model, s), logps(other, s).detach()
        expected = expected - (torch.tensor(s.weights) * policy).sum()
        expected = expected + kl.at(s.turn) * ((policy - reference) ** 2 / 2).sum()
        k3 += ((reference - policy).exp() - 1 - (reference - policy)).tolist()
    found = {name: p.grad for name, p in learner.parameters.items() if p.grad is not None}
    wanted = torch.autograd.grad(expected / len(samples), list(model.parameters()))
    assert loss == pytest.approx(expected.item() / len(samples), rel=1e-6)
    assert told["kl"] == pytest.approx(sum(k3) / len(k3), rel=1e-5) and told["tokens"] == len(k3)
    assert_same(found, dict(zip(learner.parameters, wanted, strict=True)))


@pytest.mark.parametrize("kind", [Reinforce(), PPO(), GSPO(low=0.1, high=0.1)])
@pytest.mark.parametrize("micro_tokens", [1, 50, 10_000])
def test_a_penalty_depends_neither_on_micro_batches_nor_on_order_nor_on_sharing(kind, micro_tokens):
    samples, loss = family(), held(KL(coefficient=0.3), kind)

    def step(learner: Learner, samples: list[base.Sample]) -> tuple[Any, dict[str, torch.Tensor]]:
        told = learner.accumulate(learner._with_reference(samples))
        return told, {name: p.grad for name, p in learner.parameters.items() if p.grad is not None}

    models = [tiny_model().double() for _ in range(2)]
    reference = step(Apart(models[0], fp32(), loss, tiny_model(seed=1).double()), samples)
    learner = Learner(models[1], fp32(micro_tokens=micro_tokens), loss, tiny_model(seed=1).double())
    assert micro_tokens < 10_000 or any(row.ends for row in learner._rows(samples))
    found = step(learner, samples[::-1])
    assert found[0][0] == pytest.approx(reference[0][0], abs=1e-7)
    assert found[0][1] == pytest.approx(reference[0][1], rel=1e-6)
    assert_same(found[1], reference[1], 1e-7)


def test_without_a_penalty_a_token_without_weight_is_not_there():
    silent = base.Sample([1, 2], [3], [0.0], [-1.0])
    assert not Learner(tiny_model(), fp32())._rows([silent])
    for kl, entries in ((KL(), 1), (KL(by_turn=(0.0, 0.5)), 0)):
        assert sum(len(row.entries) for row in Learner(tiny_model(), fp32(), held(kl))._rows([silent])) == entries


def test_an_update_holds_on_to_where_the_learner_started():
    samples, config = family(), fp32(lr=1e-2, warmup_steps=0, epochs=2, batch_samples=100)
    loss = held(KL(coefficient=0.5))
    one, other = (Learner(tiny_model(), config, loss) for _ in range(2))
    start = tiny_model()
    assert one.update(samples, random.Random(0))["kl"] > 0
    by_hand = [replace(s, reference=logps(start, s).tolist()) for s in samples]
    assert other.step(by_hand)["kl"] == pytest.approx(0, abs=1e-6)
    assert other.step(by_hand)["kl"] > 0
    for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-4)
    given = Learner(deepcopy(one.model), config, loss, start)  # as when a run goes on
    given.load_state(*one.state())
    told = [learner.update(samples, random.Random(1)) for learner in (one, given)]
    assert told[0] == told[1]
    assert all(torch.equal(a, b) for a, b in zip(start.parameters(), tiny_model().parameters(), strict=True))


def test_a_strong_penalty_keeps_the_policy_where_it_was():
    samples, config = family(), fp32(lr=1e-2, warmup_steps=0, epochs=20, batch_samples=100)
    free, pinned = (Learner(tiny_model(), config, held(KL(coefficient=c))) for c in (0.0, 10.0))
    ends = [learner.update(samples, random.Random(0))["kl"] for learner in (free, pinned)]
    assert ends[1] < ends[0] / 10


def test_with_adapters_the_reference_is_the_model_without_them():
    pytest.importorskip("peft")
    model = tiny_model()
    learner = Learner(model, fp32(lr=1e-1, warmup_steps=0, lora=LoRA(rank=2)), held(KL()))
    assert learner._reference is None
    first, second = (learner.update(family(), random.Random(0))["kl"] for _ in range(2))
    assert first == pytest.approx(0, abs=1e-6) and second > 1e-3
    found = learner._with_reference(family())
    for s in found:
        torch.testing.assert_close(torch.tensor(s.reference), logps(tiny_model(), s).detach(), rtol=0, atol=1e-5)
    assert all(p.requires_grad for p in learner.parameters.values())


def test_a_penalty_that_comes_later_needs_a_reference():
    learner = Learner(tiny_model(), fp32(), PPO())
    learner.loss = held(KL(), PPO())
    with pytest.raises(ConfigError, match="loss ppo has a KL term.*give the learner a reference"):
        learner.update(family(), random.Random(0))


def test_features_are_the_last_hidden_states_before_the_tokens_that_have_a_weight():
    model, samples = tiny_model(), family()
    first = [replace(s, weights=[1.0] + [0.0] * (len(s.sampled_ids) - 1)) for s in samples]
    found = Learner(model, fp32(micro_tokens=100), held(KL())).features(first)
    for s, feature in zip(samples, found, strict=True):
        state = model(torch.tensor([s.prompt_ids]), output_hidden_states=True).hidden_states[-1][0, -1]
        torch.testing.assert_close(feature, state.detach(), rtol=0, atol=1e-5)
    assert not found.requires_grad and found.dtype == torch.float32
    with pytest.raises(ModelError, match="Bare has no `get_decoder`"):
        Learner(Bare(model), fp32()).features(first)

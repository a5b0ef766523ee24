"""The learner: its loss, that packing does not change it, its schedule, its state, and what it does with a bad
gradient."""

import json
import math
import random
from dataclasses import dataclass, field

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from longstride.core.errors import RunError
from longstride.training.batching import chains, micro_batches, row_of, steps_of
from longstride.training.config import LearnerConfig
from longstride.training.learner import PATIENCE, Learner
from longstride.training.likelihood import log_likelihood, split_head

VOCABULARY = 50


@dataclass
class Sample:
    """Stands for `algorithms.base.Sample`."""

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


def test_an_update_without_samples_changes_nothing():
    learner = Learner(tiny_model(), fp32())
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

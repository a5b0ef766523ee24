"""Packing: rows that branch give the numbers of one row a sample, share what is worth it, and stay within bounds."""

import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from longstride.learner import packing
from longstride.learner.batching import micro_batches, packs, row_of, rows_of, units
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.learner.likelihood import takes_trees
from longstride.learner.packing import Row, families, merged
from longstride.learner.tree_attention import Forest
from longstride.methods import GSPO, PPO, Reinforce
from longstride.methods.base import Sample
from longstride.methods.losses import Correction

VOCABULARY = 40
SIZES: Any = {
    "vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512,
}  # fmt: skip
SLIDING: Any = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]}
MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES, tie_word_embeddings=True)),
    "gemma3": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**SIZES, **SLIDING)),
}


def make(name: str = "llama"):
    torch.manual_seed(0)
    return MODELS[name]().double()


class Apart(Learner):
    """One row a sample: what sharing must agree with."""

    def _rows(self, samples, shares=(), prompt_weight=0.0):
        return [row for n, s in enumerate(samples) if (row := row_of([s], prompt_weight, shares[n : n + 1], n)).entries]


def ids(rng: random.Random, n: int) -> list[int]:
    return [rng.randrange(VOCABULARY) for _ in range(n)]


def sample(rng: random.Random, prompt: list[int], said: list[int] | None = None, episode: int = 0) -> Sample:
    said = said or ids(rng, rng.randint(1, 6))
    weights = [rng.choice([-1.0, 0.0, 0.5, 1.0]) for _ in said]
    return Sample(prompt, said, weights, [-rng.uniform(3.2, 4.2) for _ in said], episode, 0)


def group(seed: int = 0, siblings: int = 4, turns: int = 3, prompt: int = 40) -> list[Sample]:
    """Siblings that share a prompt, each an episode whose context grows; the first two say the same at first."""
    rng = random.Random(seed)
    head, same, out = ids(rng, prompt), ids(rng, 4), []
    for k in range(siblings):
        context = list(head)
        for t in range(turns):
            out.append(sample(rng, list(context), same if t == 0 and k < 2 else None, k))
            context += out[-1].sampled_ids + ids(rng, 5)
    return out


def gradients(kind, samples, loss=None, name="llama", **numbers):
    learner = kind(make(name), LearnerConfig(dtype="float32", **numbers), loss)
    if loss is not None and loss.proximal:
        samples = learner._with_proximal(samples)
    value, told = learner.accumulate(samples)
    return value, told, {k: p.grad for k, p in learner.parameters.items()}


def assert_same(one, other, tolerance=1e-7):
    assert one[0] == pytest.approx(other[0], abs=tolerance)
    assert one[1] == pytest.approx(other[1], rel=1e-6)
    for k, grad in one[2].items():
        torch.testing.assert_close(grad, other[2][k], rtol=1e-5, atol=tolerance)


LOSSES = [Reinforce(), PPO(), PPO(correction=Correction()), GSPO(low=0.1, high=0.1)]


@pytest.mark.parametrize("loss", LOSSES, ids=["reinforce", "ppo", "decoupled", "gspo"])
def test_a_group_in_one_tree_has_the_gradient_of_a_row_for_each_sample(loss):
    samples = group()
    (row,) = rows_of(samples, branch_tokens=1000)
    assert row.ends and len(row.ids) < 0.5 * sum(len(s.prompt_ids + s.sampled_ids) for s in samples)
    assert_same(gradients(Learner, samples, loss), gradients(Apart, samples, loss))


@pytest.mark.parametrize("name", MODELS)
def test_architectures_agree_with_rows_of_their_own(name):
    samples = group(siblings=6, prompt=150)  # longer than a block of queries, and than Gemma's window
    assert takes_trees(make(name)) and any(row.ends for row in rows_of(samples, branch_tokens=1000))
    assert_same(gradients(Learner, samples, name=name), gradients(Apart, samples, name=name))


def test_a_model_that_cannot_branch_gets_rows_that_do_not():
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=1, n_head=2, n_positions=512))
    model._supports_attention_backend = False
    before = model.config._attn_implementation
    learner = Learner(model, LearnerConfig(dtype="float32"))
    assert not takes_trees(model) and model.config._attn_implementation == before
    assert not any(row.ends for row in learner._rows(group()))
    assert math.isfinite(learner.accumulate(group())[0])


samples_of_a_step = st.builds(
    lambda seed, shape: [s for k, (n, t, p) in enumerate(shape) for s in group(seed + k, n, t, p)],
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 60)), min_size=1, max_size=3),
)


@given(samples_of_a_step, st.sampled_from([1, 64, 200, 10_000]), st.sampled_from(LOSSES), st.randoms())
def test_the_loss_depends_neither_on_micro_batches_nor_on_order_nor_on_sharing(samples, micro_tokens, loss, rng):
    reference = gradients(Apart, samples, loss)
    order = rng.sample(range(len(samples)), len(samples))
    assert_same(gradients(Learner, [samples[k] for k in order], loss, micro_tokens=micro_tokens), reference)


words = st.lists(st.integers(0, 2), min_size=1, max_size=12)


@given(st.lists(words, min_size=1, max_size=8), st.integers(0, 40))
def test_every_token_of_every_sequence_sees_exactly_what_stands_before_it(sequences, branch_tokens):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "SHARED", 1)
        found = families(sequences, branch_tokens)
        assert sorted(k for family in found for k in family) == list(range(len(sequences)))
        assert [min(f) for f in found] == sorted(min(f) for f in found)
        for family in found:
            said = [sequences[k] for k in family]
            row = merged([row_of([Sample([7], ids, [1.0] * len(ids), [0.0] * len(ids))]) for ids in said])
            size = len(row.ids)
            ends = row.ends or [size] * size
            depths = row.depths or list(range(size))
            assert not row.ends or size <= branch_tokens + 1
            entries = iter(row.entries)
            for ids in said:
                for n, target in enumerate(ids):
                    entry = next(entries)
                    seen = [j for j in range(entry.at + 1) if entry.at < ends[j]]
                    assert [row.ids[j] for j in seen] == [7, *ids[:n]] and entry.target == target
                    assert [depths[j] for j in seen] == list(range(n + 1))


def test_a_forest_shows_each_token_its_ancestors_within_the_window():
    (row,) = rows_of(group(siblings=20, turns=2), branch_tokens=1000)
    n = len(row.ids)
    assert n > 128
    for window in (None, 5):
        forest, seen = Forest(row.depths, row.ends, "cpu"), np.zeros((n, n), bool)
        masks = forest.masks(window, torch.zeros(1))
        keys = forest.key.split(forest.widths)
        at = 0
        for mask, key in zip(masks, keys, strict=True):
            seen[at : at + len(mask), key] = mask == 0
            at += len(mask)
        i, j = np.ogrid[:n, :n]
        depths, ends = np.array(row.depths), np.array(row.ends)
        expected = (j <= i) & (i < ends[j])
        if window is not None:
            expected &= depths[i] - depths[j] < window
        assert (seen == expected).all()


def test_a_short_prefix_is_repeated_and_a_long_tree_is_cut():
    siblings = group(turns=1, prompt=packing.SHARED - 1)
    assert not any(row.ends for row in rows_of(siblings, branch_tokens=10_000))
    siblings = group(siblings=20, turns=1, prompt=100)
    rows = rows_of(siblings, branch_tokens=130)
    assert len(rows) > 1 and all(len(row.ids) <= 130 for row in rows) and any(row.ends for row in rows)
    assert sum(len(row.entries) for row in rows) == sum(w != 0 for s in siblings for w in s.weights)
    assert all(len(row.ids) > 100 for row in rows)  # each repeats the prefix


def test_a_row_within_another_joins_it_without_a_branch():
    one = Sample([1, 2, 3], [4, 5], [1.0, 1.0], [0.0, 0.0])
    longer = Sample([1, 2, 3, 4, 5, 6], [7], [1.0], [0.0])
    (row,) = rows_of([longer, one, one])
    assert row.ids == [1, 2, 3, 4, 5, 6, 7] and not row.ends
    assert sorted((e.at, e.sequence) for e in row.entries) == [(2, 1), (2, 2), (3, 1), (3, 2), (5, 0)]


def test_rows_that_branch_are_packed_without_padding_and_apart():
    trees = [row for seed in range(3) for row in rows_of(group(seed), branch_tokens=1000)]
    paths = [row_of([s]) for s in group(9)]
    batches = micro_batches([*paths, *trees], 150)
    assert [b.forest is not None for b in batches] == sorted(b.forest is not None for b in batches)
    for batch in batches:
        assert batch.ids_B_L.numel() <= 150 or len(batch.ids_B_L) == 1
    (forest,) = [b for b in micro_batches(trees, 10_000) if b.forest]
    assert forest.ids_B_L.shape == (1, sum(len(t.ids) for t in trees))
    assert packs([Row([1, 2], [])], 10) == [[Row([1, 2], [])]]


def test_siblings_that_share_are_one_unit_unless_they_are_too_many():
    mixed = [s for pair in zip(group(0, turns=1), group(1, turns=1), strict=True) for s in pair]
    for s in mixed:
        s.weights = [1.0] * len(s.weights)
    found = units(mixed, 10_000, most=100)
    assert [[mixed.index(s) for s in unit] for unit in found] == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert [len(unit) for unit in units(mixed, 10_000, most=3)] != [4, 4]
    assert max(len(unit) for unit in units(mixed, 10_000, most=3)) <= 3
    alone = units(mixed, 0, most=100)
    assert sorted(mixed.index(s) for unit in alone for s in unit) == list(range(8)) and len(alone) >= 6


def test_what_is_not_trained_is_in_a_unit_all_the_same():
    silent = Sample([1, 2], [3], [0.0], [0.0])
    assert units([silent, Sample([1, 2], [3], [1.0], [0.0]), silent], 100, 10) == [
        [silent],
        [Sample([1, 2], [3], [1.0], [0.0])],
        [silent],
    ]

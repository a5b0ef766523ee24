"""Packing: rows that branch give the numbers of one pass a sample, share what is worth it, and stay within bounds."""

import math
import random
from typing import Any

import numpy as np
import pytest
import torch
from by_hand import VOCABULARY, assert_same, growing_group, random_samples, step_of, step_of_learner
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_models import MODELS, learner_of, make
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
)

from longstride.core.content import Media, by_placeholder
from longstride.core.errors import ModelError
from longstride.learner import packing
from longstride.learner.batching import StreamTable, chains, micro_batch, packs, row_of, rows_of, steps_of, units
from longstride.learner.learner import Learner
from longstride.learner.likelihood import takes_trees
from longstride.learner.packing import Row, merged, trees
from longstride.learner.tree_attention import Forest
from longstride.methods import PPO, Mean, Reinforce, Sample, demonstration
from longstride.methods.ratios import GSPO


def rows_for(samples: list[Sample], branch_tokens: int = 0) -> list[Row]:
    return rows_of(samples, StreamTable(samples), branch_tokens)


# Rows that branch, against one pass a sample


@pytest.mark.parametrize("name", MODELS)
def test_siblings_in_one_tree_have_the_gradient_of_one_pass_a_sample(name):
    samples = growing_group(episodes=6, prompt=150)  # longer than a block of queries, and than Gemma's window
    assert takes_trees(make(name))
    (row,) = rows_for(samples, branch_tokens=1000)
    assert row.ends and len(row.ids) < 0.5 * sum(len(s.prompt_ids + s.sampled_ids) for s in samples)
    assert_same(step_of_learner(learner_of(make(name)), samples), step_of(make(name), samples, Reinforce()))


def test_a_model_that_cannot_branch_gets_rows_that_do_not():
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_embd=16, n_layer=1, n_head=2, n_positions=512))
    model._supports_attention_backend = False
    before, samples = model.config._attn_implementation, growing_group()
    learner = learner_of(model)
    assert not takes_trees(model) and model.config._attn_implementation == before
    assert math.isfinite(learner.accumulate(samples)[0])
    assert_same(step_of_learner(learner, samples), step_of(model, samples, Reinforce()), 1e-5)


samples_of_a_step = st.builds(
    lambda seed, shape: [s for k, (n, t, p) in enumerate(shape) for s in growing_group(seed + k, n, t, p)],
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 60)), min_size=1, max_size=3),
)
LOSSES = [Reinforce(entropy=0.1), PPO(aggregation=Mean(over="prompt")), GSPO(clip_low=0.1, clip_high=0.1)]


@settings(max_examples=25)
@given(samples_of_a_step, st.sampled_from([1, 64, 200, 10_000]), st.sampled_from(LOSSES), st.randoms())
def test_the_loss_depends_neither_on_micro_batches_nor_on_order_nor_on_what_rows_share(
    samples, micro_tokens, loss, rng
):
    if not any(a for s in samples for a in s.advantages):
        return
    expected = step_of(make(), samples, loss)
    learner = learner_of(make(), loss, micro_tokens=micro_tokens)
    assert_same(step_of_learner(learner, rng.sample(samples, len(samples))), expected)


# Rows


def test_the_turns_of_an_episode_whose_context_grows_are_one_row():
    episode = growing_group(episodes=1, turns=4)
    assert chains(episode + growing_group(1, episodes=1)) == [[0, 1, 2, 3], [4, 5, 6]]
    assert chains(episode[::-1]) == [[0], [1], [2], [3]]
    (row,) = rows_for(episode)
    assert [t.index for t in row.tokens] == np.flatnonzero([a for s in episode for a in s.advantages]).tolist()
    assert all(row.ids[t.at + 1] == t.target for t in row.tokens)


def test_what_stands_after_the_last_trained_token_is_not_computed():
    (row,) = rows_for([Sample([1, 2], [3, 4, 5, 6], {"advantages": [1.0, 0.0, 0.0, 0.0]})])
    assert row.ids == [1, 2, 3] and [(t.at, t.target, t.index) for t in row.tokens] == [(1, 3, 0)]


def test_a_token_is_trained_where_its_advantage_or_a_coefficient_is_not_0():
    samples = [Sample([1, 2], [3, 4], {"advantages": [0.0, 1.0]}), Sample([1], [5], {"advantages": [0.0]})]
    trained = lambda coefficients: StreamTable(samples, coefficients).trained_N.tolist()  # noqa: E731
    assert trained({}) == [False, True, False]
    assert trained({"kl_coefficient": [0.0, 0.5]}) == [False, True, True]
    assert trained({"kl_coefficient": [0.1, 0.0], "entropy_coefficient": [0.0, 0.0]}) == [True, True, False]


words = st.lists(st.integers(0, 2), min_size=1, max_size=12)


@given(st.lists(words, min_size=1, max_size=8), st.integers(0, 40))
def test_every_token_of_every_sequence_sees_exactly_what_stands_before_it(sequences, branch_tokens):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "SHARED", 1)
        found = trees(sequences, branch_tokens)
        assert sorted(k for tree in found for k in tree) == list(range(len(sequences)))
        assert [min(f) for f in found] == sorted(min(f) for f in found)
        for tree in found:
            texts = [sequences[k] for k in tree]
            row = merged([rows_for([demonstration([7], ids)])[0] for ids in texts])
            size = len(row.ids)
            ends = row.ends or [size] * size
            depths = row.depths or list(range(size))
            assert not row.ends or size <= branch_tokens + 1
            tokens = iter(row.tokens)
            for ids in texts:
                for n, target in enumerate(ids):
                    token = next(tokens)
                    seen = [j for j in range(token.at + 1) if token.at < ends[j]]
                    assert [row.ids[j] for j in seen] == [7, *ids[:n]] and token.target == target
                    assert [depths[j] for j in seen] == list(range(n + 1))


def test_a_forest_shows_each_token_its_ancestors_within_the_window():
    (row,) = rows_for(growing_group(episodes=20, turns=2), branch_tokens=1000)
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
    siblings = growing_group(turns=1, prompt=packing.SHARED - 1)
    assert not any(row.ends for row in rows_for(siblings, branch_tokens=10_000))
    siblings = growing_group(episodes=20, turns=1, prompt=100)
    rows = rows_for(siblings, branch_tokens=130)
    assert len(rows) > 1 and all(len(row.ids) <= 130 for row in rows) and any(row.ends for row in rows)
    assert sum(len(row.tokens) for row in rows) == sum(a != 0 for s in siblings for a in s.advantages)
    assert all(len(row.ids) > 100 for row in rows)  # each repeats the prefix


def test_a_row_within_another_joins_it_without_a_branch():
    one, longer = demonstration([1, 2, 3], [4, 5]), demonstration([1, 2, 3, 4, 5, 6], [7])
    (row,) = rows_for([longer, one, one])
    assert row.ids == [1, 2, 3, 4, 5, 6, 7] and not row.ends
    assert sorted((t.at, t.index) for t in row.tokens) == [(2, 1), (2, 3), (3, 2), (3, 4), (5, 0)]


# Micro-batches, units and steps


def test_a_micro_batch_holds_at_most_the_tokens_asked_for_unless_one_row_is_longer():
    samples = random_samples(50)
    parts = packs(rows_for(samples), 64)
    batches = [micro_batch(part, StreamTable(samples)) for part in parts]
    assert all(b.ids_B_L.numel() <= 64 or len(b.ids_B_L) == 1 for b in batches)
    assert len(batches) < 50 and sum(len(b.target_P) for b in batches) == sum(len(s.sampled_ids) for s in samples)


def test_rows_that_branch_are_packed_without_padding_and_apart():
    samples = [s for seed in range(3) for s in growing_group(seed)] + random_samples(9)
    table = StreamTable(samples)
    rows = rows_of(samples, table, 1000)
    parts = packs(rows, 250)
    assert all(len({bool(row.ends) for row in part}) == 1 for part in parts)
    for batch in (micro_batch(part, table) for part in parts):
        assert batch.ids_B_L.numel() <= 250 or len(batch.ids_B_L) == 1
    trees = [row for row in rows if row.ends]
    batch = micro_batch(trees, table)
    assert len(trees) == 3 and batch.forest is not None
    assert batch.ids_B_L.shape == (1, sum(len(tree.ids) for tree in trees))
    assert packs([Row([1, 2], [])], 10) == [[Row([1, 2], [])]]


def numbered_units(samples: list[Sample], branch_tokens: int, most: int) -> list[list[int]]:
    places = {id(s): n for n, s in enumerate(samples)}
    return [[places[id(s)] for s in unit] for unit in units(samples, StreamTable(samples), branch_tokens, most)]


def test_siblings_that_share_are_one_unit_unless_they_are_too_many():
    one, other = ([s for s in growing_group(seed, turns=1) if any(s.advantages)] for seed in (0, 1))
    size = min(len(one), len(other))
    mixed = [s for pair in zip(one, other, strict=False) for s in pair]
    assert size >= 3
    together = numbered_units(mixed, 10_000, most=100)
    assert together == [list(range(0, 2 * size, 2)), list(range(1, 2 * size, 2))]
    assert max(map(len, numbered_units(mixed, 10_000, most=2))) == 2
    alone = numbered_units(mixed, 0, most=100)
    assert sorted(n for unit in alone for n in unit) == list(range(2 * size)) and len(alone) > 2


def test_what_is_not_trained_is_in_a_unit_too():
    silent = Sample([1, 2], [3], {"advantages": [0.0]})
    assert numbered_units([silent, demonstration([1, 2], [3]), Sample([9], [3], {"advantages": [0.0]})], 100, 10) == [
        [0], [1], [2],
    ]  # fmt: skip


def test_steps_are_cut_evenly_and_never_through_a_unit():
    assert [len(part) for part in steps_of([[k] for k in range(10)], 4)] == [3, 4, 3]
    assert steps_of([[1, 2, 3], [4, 5, 6], [7]], 4) == [[1, 2, 3], [4, 5, 6, 7]]
    assert steps_of([], 4) == []


# Images and data

RED, BLUE = Media(b"red"), Media(b"blue")


def seeing(*media: Media) -> list[Sample]:
    """Of each, a turn whose prompt has it, and of the last a second turn that goes on."""
    first = [demonstration([1, m.placeholder, 2], [3, 4], media=(m,)) for m in media]
    later = [*first[-1].prompt_ids, *first[-1].sampled_ids, 5]
    return [*first, demonstration(later, [6], media=first[-1].media)]


def test_prompts_are_shared_as_far_as_their_images_are_the_same() -> None:
    samples = seeing(RED, BLUE, BLUE)
    assert chains(samples) == [[0], [1], [2, 3]]
    same, other = (rows_for([samples[0], samples[k]], branch_tokens=64) for k in (0, 1))
    assert len(same) == 1 and sum(len(row.ids) for row in other) > sum(len(row.ids) for row in same)


def test_a_micro_batch_has_the_content_of_its_placeholders_beside_it_and_of_no_other() -> None:
    samples = seeing(RED, BLUE)
    table = StreamTable(samples)
    rows = [row_of(samples, chain, table) for chain in chains(samples)]
    assert [micro_batch([row], table).media for row in rows] == [{m.placeholder: m} for m in (RED, BLUE)]
    assert micro_batch(rows, table).media == table.media == by_placeholder([RED, BLUE])
    samples[0].media = ()
    with pytest.raises(ValueError, match="stands for nothing that was seen"):
        micro_batch(rows, StreamTable(samples))


@pytest.mark.parametrize("work", [lambda learner, s: learner.update(s, random.Random(0)), Learner.logprobs])
def test_a_learner_of_text_alone_refuses_images_and_says_what_to_do(work: Any) -> None:
    with pytest.raises(ModelError, match=r"a sample has \[image/png, 3 bytes, .*set chat.media=leave_out"):
        work(learner_of(make()), seeing(RED))

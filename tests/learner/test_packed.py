"""Rows without padding, FlexAttention's masks, and heads in parts: the numbers of the plain path."""

import copy
import random
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from by_hand import VOCABULARY, assert_same, growing_group, random_samples, step_of, step_of_learner
from packed_models import MODELS, learner_of, make
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask

from longstride.core.errors import ModelError
from longstride.learner import likelihood, tree_attention
from longstride.learner.batching import StreamTable, micro_batch, packs, rows_of
from longstride.learner.config import LearnerConfig
from longstride.learner.flex import BLOCK, block_mask
from longstride.learner.head import in_parts
from longstride.learner.learner import Learner
from longstride.learner.likelihood import _logprobs_of
from longstride.learner.tree_attention import Forest
from longstride.methods import PPO, Reinforce
from longstride.methods.base import BEHAVIOUR


@pytest.mark.parametrize("name", MODELS)
def test_packed_rows_have_the_gradient_of_one_pass_a_sample(name: str) -> None:
    samples = growing_group(episodes=4, prompt=150) + random_samples(5)
    packed = learner_of(make(name), packed=True, micro_tokens=900)
    assert_same(step_of_learner(packed, samples), step_of(make(name), samples, Reinforce()))


def test_packed_rows_are_one_sequence_without_padding() -> None:
    samples = growing_group(episodes=4, prompt=40) + random_samples(5)
    table = StreamTable(samples)
    rows = rows_of(samples, table, branch_tokens=500)
    assert {bool(row.ends) for row in rows} == {True, False}
    (part,) = packs(rows, 10_000, packed=True)
    batch = micro_batch(part, table, packed=True)
    assert batch.ids_B_L.shape == (1, sum(len(row.ids) for row in rows)) and batch.forest is not None
    parts = packs(rows, 60, packed=True)
    assert sorted(len(r.ids) for p in parts for r in p) == sorted(len(r.ids) for r in rows)
    assert all(len(p) == 1 or sum(len(r.ids) for r in p) <= 60 for p in parts)


def test_packing_is_for_gpus_unless_it_is_asked_for() -> None:
    assert not learner_of(make())._likelihood.packed and learner_of(make(), packed=True)._likelihood.packed


def forest_of(seed: int, roots: int) -> tuple[np.ndarray, np.ndarray]:
    """Depths and ends of random trees, one behind the other, in depth-first order."""
    rng, depths, ends, path = random.Random(seed), [], [], []
    for _ in range(roots):
        path = []
        for _ in range(rng.randint(1, 120)):
            if path and rng.random() < 0.05:
                path = path[: rng.randint(1, len(path))]
            place = len(depths)
            depths.append(len(path))
            ends.append(0)
            path.append(place)
            for k in path:
                ends[k] = place + 1
    return np.array(depths), np.array(ends)


@pytest.mark.parametrize("window", [None, 30])
@pytest.mark.parametrize("seed", range(4))
def test_the_block_mask_is_the_one_that_looking_at_every_pair_makes(seed: int, window: int | None) -> None:
    depth, end = forest_of(seed, roots=12)
    n = len(depth)
    assert n > 2 * BLOCK
    ours = block_mask(depth, end, window, torch.device("cpu"))
    theirs = create_block_mask(ours.mask_mod, None, None, n, n, device="cpu", BLOCK_SIZE=BLOCK)
    i, j = np.indices((n, n))
    seen = (j <= i) & (i < end[j]) & (depth[i] - depth[j] < (window or n))
    assert torch.equal(ours.mask_mod(None, None, torch.from_numpy(i), torch.from_numpy(j)), torch.from_numpy(seen))  # pyright: ignore
    # a block is read wherever it has to be, and at a full one no pair is looked at
    read, needed = ours.to_dense()[0, 0].bool(), theirs.to_dense()[0, 0].bool()
    assert (read | ~needed).all() and (window is not None or torch.equal(read, needed))
    assert ours.full_kv_num_blocks is not None
    full = zip(ours.full_kv_num_blocks[0, 0], ours.full_kv_indices[0, 0], strict=True)  # pyright: ignore
    for block, (count, numbers) in enumerate(full):
        for k in numbers[:count].tolist():
            assert seen[block * BLOCK : (block + 1) * BLOCK, k * BLOCK : (k + 1) * BLOCK].all()


@pytest.mark.parametrize("window", [None, 30])
def test_flex_attention_gives_what_gathers_give(monkeypatch: pytest.MonkeyPatch, window: int | None) -> None:
    depth, end = forest_of(0, roots=8)
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, heads, len(depth), 16, generator=generator) for heads in (4, 2, 2))

    def attended() -> torch.Tensor:
        forest = Forest(depth.tolist(), end.tolist(), "cpu")
        return tree_attention.attend(None, q, k, v, None, forest=forest, sliding_window=window)[0]

    gathered = attended()
    monkeypatch.setattr(tree_attention, "FLEX", ["cpu"])
    torch.testing.assert_close(attended(), gathered, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_log_probabilities_by_flex_attention_are_those_of_the_plain_path(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    samples = growing_group(episodes=4, prompt=150) + random_samples(5)
    model = make(name).float()
    try:
        plain = learner_of(model).logprobs(samples)
        monkeypatch.setattr(tree_attention, "FLEX", ["cpu"])
        learner = learner_of(model, packed=True)
        assert learner._likelihood.trees
        for ours, theirs in zip(learner.logprobs(samples), plain, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-5)
    finally:
        model.double()


@pytest.mark.parametrize("entropy", [False, True])
@pytest.mark.parametrize("rows", [1, 7, 20])
def test_a_head_in_parts_has_the_values_and_gradients_of_the_whole(rows: int, entropy: bool) -> None:
    torch.manual_seed(0)
    head, hidden, target = nn.Linear(8, 50), torch.randn(20, 8, requires_grad=True), torch.randint(50, (20,))

    def total(logp: torch.Tensor, more: torch.Tensor | None) -> torch.Tensor:
        weights = torch.arange(20.0)
        return (weights * logp).sum() + ((weights * more).sum() if more is not None else 0)

    inputs = [hidden, *head.parameters()]
    read = partial(_logprobs_of, entropy=entropy)
    whole = read(head(hidden), target)
    parts = in_parts(head, hidden, target, read, False, rows * 50 * 4)
    assert (parts[1] is not None) == entropy
    torch.testing.assert_close(parts, whole, atol=1e-6, rtol=1e-6)
    for ours, theirs in zip(
        torch.autograd.grad(total(*parts), inputs), torch.autograd.grad(total(*whole), inputs), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-6)


def test_no_logits_of_more_than_a_part_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    samples, seen = growing_group(episodes=4, prompt=40), []
    model = make()
    plain = step_of_learner(learner_of(model), samples)
    monkeypatch.setattr(likelihood, "LOGITS", 5 * VOCABULARY * 4)
    learner = learner_of(model)
    hook = model.get_output_embeddings().register_forward_hook(lambda _, given, out: seen.append(len(out)))
    try:
        assert_same(step_of_learner(learner, samples), plain)
    finally:
        hook.remove()
    assert max(seen) == 5 and sum(seen) > 20


def test_a_float32_head_is_nearer_to_float32_than_bfloat16_is(monkeypatch: pytest.MonkeyPatch) -> None:
    samples, model = growing_group(episodes=4, prompt=40), make().float()
    try:
        exact = learner_of(model).logprobs(samples)

        def gap(**changes: Any) -> float:
            found = Learner(model, LearnerConfig(dtype="bfloat16", **changes)).logprobs(samples)
            return float(np.abs(np.concatenate(found) - np.concatenate(exact)).mean())

        assert gap(float32_head=True) < gap()
        monkeypatch.setattr(likelihood, "split_head", lambda _: None)
        with pytest.raises(ModelError, match="learner.float32_head: the head of .* cannot be run by itself"):
            gap(float32_head=True)
    finally:
        model.double()


def test_an_update_says_how_far_it_is_from_what_was_sampled() -> None:
    samples = growing_group(episodes=4, prompt=40)
    learner = learner_of(copy.deepcopy(make()), PPO(), batch_samples=4, lr=1e-2)
    true = learner.logprobs(samples)
    for s, logprobs in zip(samples, true, strict=True):
        s.streams[BEHAVIOUR] = [x + 0.25 for x in logprobs]
    metrics = learner.update(samples, random.Random(0))
    assert metrics["steps"] > 1 and metrics["sampling_gap"] == pytest.approx(0.25, abs=1e-6)

"""The benchmark of generation, on a model and prompts so small that it measures nothing."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import linear, scaled_dot_product_attention

from longstride.bench import generation, hf_peer
from longstride.bench.generation import GenerationWork, Products, measure, ours, play, theirs, wanted
from longstride.core.errors import ConfigError, RunError
from longstride.models.native import library
from longstride.models.tiny import TinyConfig, build_model

WORK = GenerationWork("3 groups of 2, 2 turns", 3, group=2, turns=2, goal=2.0)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    shape = TinyConfig(width=16, layers=1, heads=4, kv_heads=2, ffn=16, context=128)
    for name, value in {"SHAPE": shape, "PROMPT": (20, 30), "NEW": (2, 4), "SEEN": (3, 5), "WORKS": (WORK,)}.items():
        monkeypatch.setattr(generation, name, value)


@pytest.fixture
def model() -> Any:
    model: Any = build_model(generation.SHAPE, generation.VOCABULARY, seed=0)
    model.generation_config.eos_token_id = None
    return model


def test_both_sides_sample_what_is_wanted_and_nothing_less(model):
    for sampler in (ours(model), theirs(model)):
        said: list[list[int]] = []

        def sample(turn, prompts, new, sampler=sampler, said=said):
            out = sampler(turn, prompts, new)
            said.append([len(ids) for ids in out])
            assert prompts[0][:20] == prompts[1][:20] != prompts[2][:20]
            return out

        assert play(WORK, sample) > 0
        assert said == wanted(WORK) and len(said) == 2 and len(said[0]) == 6


def test_padding_changes_nothing_for_the_peer(model):
    model.generation_config.temperature = 1e-5  # greedy: the two best logits may differ by .003
    prompts = [[5] * 7, [6, 7, 8]]
    together = hf_peer.generate(model, prompts, [4, 4])
    assert together == [hf_peer.generate(model, [p], [4])[0] for p in prompts]


def test_a_peer_that_stops_early_ends_the_benchmark(model, monkeypatch):
    monkeypatch.setattr(type(model), "generate", lambda self, input_ids, **_: input_ids)
    with pytest.raises(RunError, match="0 new tokens instead of 3"):
        hf_peer.generate(model, [[5, 6]], [3])


def test_products_are_noted_with_their_shapes_and_done_again():
    x, w, q, k = torch.rand(2, 3, 4), torch.rand(5, 4), torch.rand(1, 2, 3, 4), torch.rand(1, 2, 7, 4)
    with Products() as products:
        linear(x, w)
        scaled_dot_product_attention(q, k, k)
        torch.bmm(x, w.T.expand(2, -1, -1)).baddbmm_(x, w.T.expand(2, -1, -1))
    assert (products.linear, products.attention) == ([(6, 4, 5)], [((1, 2, 3, 4), (1, 2, 7, 4))])
    assert products.batched == [((2, 3, 4), (2, 4, 5))] * 2
    assert products.seconds() > 0


def test_every_work_has_a_ratio_and_a_share():
    rows, versions = measure(None, 2, lambda _: None)
    native = [f"{WORK.name}: native kernels"] if library() is not None else []
    assert [row.name for row in rows] == [WORK.name, f"{WORK.name}: matrix products", *native]
    assert rows[0].goal == 2.0 and rows[0].peer is not None and rows[0].higher_is_better
    assert all(np.asarray(row.ours).shape == (2,) and (np.asarray(row.ours) > 0).all() for row in rows)
    assert {"transformers", "torch"} <= set(versions)


def test_another_environment_is_refused():
    with pytest.raises(ConfigError, match="leave --peer python out"):
        measure("python", 2, lambda _: None)

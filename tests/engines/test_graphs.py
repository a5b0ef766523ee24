"""Decoding passes of a fixed shape: the ids and log-probabilities of the plain passes. Capturing them needs CUDA."""

from typing import Any

import pytest
import torch
from engine_models import NEVER, alone, batch, difference, like, llama, other, prompts

from longstride.engines import graphs
from longstride.engines.attention import KeyValueStore, Piece
from longstride.engines.base import Request
from longstride.engines.graphs import DecodeGraphs, StaticLayout
from longstride.engines.local import LocalEngine


def engine_of(model: Any, **more: Any) -> LocalEngine:
    return LocalEngine(model, NEVER, 128, graphs=True, **more)


@pytest.mark.parametrize("name", ["llama", "qwen3", "sliding window"])
def test_requests_of_all_lengths_give_what_each_gives_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "LENGTH", 8)
    model = llama() if name == "llama" else other(name)
    requests = batch(prompts(6), max_new=9)
    engine = engine_of(model)
    got = engine.generate(requests)
    assert all(like(done, alone(model, r)) for done, r in zip(got, requests, strict=True))
    assert len(engine._decode._buckets) > 1


def test_all_buckets_leave_their_logits_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "LENGTH", 8)
    model = llama().eval()
    passes, store = DecodeGraphs(engine_of(model)._model, model), KeyValueStore(4, 32)
    for row, start in ((0, 0), (1, 3), (3, 20)):
        passes(store, [5], [Piece(row, start, 1)])
    assert len(passes._buckets) == 3 and passes._logits_S_V is not None
    assert passes._logits_S_V.shape == (4, model.config.vocab_size)


def test_what_idle_slots_hold_is_left_alone() -> None:
    model = llama()
    engine = engine_of(model)
    first = Request(list(range(5, 45)), 4, seed=0, session=1)
    engine.generate([first])
    engine.generate(batch(prompts(4), max_new=6))  # decodes beside the session's idle slot
    again = Request(list(range(5, 45)) + [7], 4, seed=1, session=1)
    before = engine.tokens_in
    assert like(engine.generate([again])[0], alone(model, again))
    assert engine.tokens_in - before < 10  # what was cached was read


def test_a_bucket_is_used_again_until_the_store_has_other_memory() -> None:
    model = llama().eval()
    engine = engine_of(model)
    passes = DecodeGraphs(engine._model, model)
    store = KeyValueStore(4, 512)
    for start in range(3):
        passes(store, [5, 6], [Piece(0, start, 1), Piece(1, start, 1)])
    assert list(passes._buckets) == [(2, 256)]
    passes(store, [5], [Piece(3, 300, 1)])
    assert list(passes._buckets) == [(2, 256), (4, 512)]
    store.resize(8, 512, [(0, 3), (1, 3)])
    passes(store, [5], [Piece(0, 3, 1)])
    assert list(passes._buckets) == [(1, 256)]


def test_rows_of_idle_slots_write_what_the_first_one_writes() -> None:
    layout = StaticLayout(KeyValueStore(4, 8), 4, 8, torch.device("cpu"))
    layout.fill([9, 7], [Piece(1, 2, 1), Piece(3, 5, 1)])
    assert layout.id_R.tolist() == [0, 9, 0, 7] and layout.position_R.tolist() == [0, 2, 0, 5]
    assert layout.at_R.tolist() == [10, 10, 10, 29] and layout.source_R.tolist() == [1, 1, 1, 3]


def test_a_head_in_float32_brings_bfloat16_nearer_to_the_model() -> None:
    model = llama().eval()
    requests, gaps = batch(prompts(6), max_new=9), []
    for float32_head in (False, True):
        engine = LocalEngine(model, NEVER, 128, dtype="bfloat16", float32_head=float32_head)
        gaps.append(difference(model, requests, engine.generate(requests)))
    assert gaps[1] < gaps[0]
    head: Any = model.get_output_embeddings()
    head.weight.data.mul_(2)
    engine.update(model, 1)
    assert difference(model, requests, engine.generate(requests)) < 2 * gaps[0]


@pytest.mark.parametrize("more", [{}, {"shared": False}, {"dtype": "bfloat16", "float32_head": True}])
def test_buckets_outlive_an_update_that_leaves_weights_where_they_are(more: dict[str, Any]) -> None:
    model = llama().eval()
    engine, requests = engine_of(model, **more), batch(prompts(6), max_new=9)
    old = engine.generate(requests)
    passes, layouts = engine._decode, {bucket: known[0] for bucket, known in engine._decode._buckets.items()}
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1.5)
    engine.update(model, 1)
    got = engine.generate(requests)
    assert engine._decode is passes and {b: k[0] for b, k in passes._buckets.items()} == layouts
    want = engine_of(model, **more).generate(requests)
    assert [done.ids for done in got] == [done.ids for done in want] != [done.ids for done in old]
    assert all(a.logprobs == pytest.approx(b.logprobs, abs=1e-5) for a, b in zip(got, want, strict=True))


def test_weights_that_moved_are_taken_anew_and_no_shared_one_is_written_to() -> None:
    model, second = llama().eval(), llama().eval()
    engine, requests = engine_of(model), batch(prompts(6), max_new=9)
    engine.generate(requests)
    passes = engine._decode
    with torch.no_grad():
        for p, q in zip(model.parameters(), second.parameters(), strict=True):
            p.data, q.data = 1.5 * p, 2 * q
    engine.update(model, 1)
    assert engine._decode is not passes
    assert all(like(done, alone(model, r)) for done, r in zip(engine.generate(requests), requests, strict=True))
    kept = [p.clone() for p in model.parameters()]
    engine.update(second, 2)
    assert all(like(done, alone(second, r)) for done, r in zip(engine.generate(requests), requests, strict=True))
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), kept, strict=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="capturing needs CUDA")
def test_captured_passes_are_the_uncaptured_ones_also_after_the_store_grew() -> None:
    model: Any = llama().to("cuda").eval()
    plain, captured = LocalEngine(model, NEVER, 128), engine_of(model)
    for n in (6, 1, 12):
        requests = batch(prompts(n), max_new=9)
        want, got = plain.generate(requests), captured.generate(requests)
        assert all(like(done, other) for done, other in zip(got, want, strict=True))

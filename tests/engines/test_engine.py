"""The local engine: what it samples, what it says about it, and what it keeps between calls."""

import random
from typing import Any

import numpy as np
import pytest
import torch
from engine_models import (
    END,
    NEVER,
    VOCABULARY,
    batch,
    difference,
    llama,
    other,
    plain,
    prompts,
)  # fmt: skip
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.gpt_oss import GptOssConfig, GptOssForCausalLM

import longstride.engines.attention as attention
import longstride.engines.local as local
import longstride.engines.rows as rows
from longstride.core.content import Media
from longstride.core.errors import EngineFailure, LongstrideWarning, ModelError
from longstride.engines.base import Completion, Refused, Request, Sampling
from longstride.engines.cache import common_prefix
from longstride.engines.local import LocalEngine
from longstride.engines.sampling import _nucleus, draw, uniforms


@pytest.mark.parametrize("name", ["llama", "qwen3", "sliding window", "mistral", "gpt_neox", "gpt2"])
def test_logprobs_are_those_of_a_plain_forward_pass(name: str) -> None:
    model = llama() if name == "llama" else other(name)
    requests = batch(prompts(9), max_new=12)
    done = LocalEngine(model, NEVER, 128).generate(requests)
    assert [len(c.ids) for c in done] == [12] * 9
    assert difference(model, requests, done) < 1e-5


def test_logprobs_hold_when_passes_are_cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(attention.QUERIES, "cpu", 7)
    monkeypatch.setitem(attention.CALL, "cpu", 100)
    monkeypatch.setattr(attention, "SCORES", 200)
    monkeypatch.setitem(local.PASS_TOKENS, "cpu", 10)
    model, requests = llama(), batch(prompts(9))
    whole = LocalEngine(model, NEVER, 128).generate(requests)
    assert difference(model, requests, whole) < 1e-5


def _played(engine: LocalEngine, sessions: bool, release: bool = False) -> list[Completion]:
    """Three turns of eight episodes; every other one drops its older pages, the rest only grow."""
    rng = random.Random(5)
    history: list[list[int]] = [[10 + i, 11, 12, 13] for i in range(8)]
    said = []
    for turn in range(3):
        pages = [[rng.randrange(VOCABULARY) for _ in range(rng.randint(3, 20))] for _ in history]
        playing = rng.sample(range(8), 8 - turn)
        requests = [
            Request(history[i] + pages[i], 5, seed=10 * turn + i, session=i if sessions else None) for i in playing
        ]
        done = engine.generate(requests)
        for i, c in zip(playing, done, strict=True):
            history[i] += [*(pages[i] if i % 2 else [7]), *c.ids, END]
        said += done
        if release:
            engine.release(playing[0])
    return said


@pytest.mark.parametrize("limits", [{}, {"max_batch": 3}, {"cache_bytes": 3 * 64 * 512}])
def test_reusing_cached_prefixes_changes_nothing(limits: dict[str, Any]) -> None:
    model = llama()
    fresh, cached = LocalEngine(model, NEVER, 128), LocalEngine(model, NEVER, 128, **limits)
    want, got = _played(fresh, sessions=False), _played(cached, sessions=True, release=True)
    assert [c.ids for c in got] == [c.ids for c in want]
    assert np.allclose(np.concatenate([c.logprobs for c in got]), np.concatenate([c.logprobs for c in want]), atol=1e-5)


def test_only_what_is_not_cached_is_encoded() -> None:
    engine = LocalEngine(llama(), NEVER, 128)
    first = engine.generate([Request([5, 6, 7, 8], 3, seed=1, session=9)])[0]
    assert (engine.tokens_in, engine.tokens_out) == (4, 3)
    engine.generate([Request([5, 6, 7, 8, *first.ids, 9], 1, seed=1, session=9)])
    assert (engine.tokens_in, engine.tokens_out) == (6, 4)  # the last sampled token, and the new one
    engine.generate([Request([5, 6, 0, 0], 1, seed=1, session=9)])
    assert engine.tokens_in == 8
    engine.release(9)
    engine.generate([Request([5, 6, 0, 0, 1], 1, seed=1, session=9)])
    assert engine.tokens_in == 9  # what was given back stands there until somebody else gets it
    engine.update(llama(), 1)
    engine.generate([Request([5, 6, 0, 0, 1], 1, seed=1, session=9)])
    assert engine.tokens_in == 14


def test_keys_and_values_stay_under_their_limit() -> None:
    engine = LocalEngine(llama(), NEVER, 128, cache_bytes=100_000)
    bytes_per_token = 2 * 2 * 2 * 8 * 4  # layers, keys and values, heads, size, float32
    for s in range(0, 40, 4):
        engine.generate([Request([1] * (10 + 2 * s), 4, seed=s, session=s + i) for i in range(4)])
        store, slots = engine._cache.store, engine._cache._sessions.values()
        assert store.bytes_per_token == bytes_per_token
        assert store.slots * store.capacity * bytes_per_token <= 100_000
        assert len({slot.row for slot in slots}) == len(slots) <= store.slots


def test_a_prompt_that_cannot_fit_the_memory_says_what_to_do() -> None:
    engine = LocalEngine(llama(), NEVER, 128, cache_bytes=1000)
    said = pytest.warns(LongstrideWarning, match="an episode failed, as others of its length will")
    with said, pytest.raises(Refused, match="engine.cache_gigabytes"):
        engine.generate([Request([1] * 10, 4, seed=1)])


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.0}, {"temperature": 0.7, "top_p": 0.8}])
def test_a_sample_does_not_depend_on_its_neighbours(sampling: dict[str, float]) -> None:
    engine = LocalEngine(llama(), frozenset([END, 5, 6]), 128)
    requests = batch(prompts(12), max_new=20, **sampling)
    together = engine.generate(requests)
    assert len({len(c.ids) for c in together}) > 3  # rows leave at different times
    alone = [engine.generate([r])[0] for r in requests]
    backwards = engine.generate(requests[::-1])[::-1]
    assert [c.ids for c in together] == [c.ids for c in alone] == [c.ids for c in backwards]


def test_the_seed_alone_makes_samples_differ() -> None:
    engine = LocalEngine(llama(), NEVER, 128)
    done = engine.generate([Request([1, 2, 3], 8, seed=s) for s in (1, 2, 1)])
    assert done[0].ids == done[2].ids != done[1].ids


def test_temperature_zero_takes_the_most_likely_token() -> None:
    model, request = llama(), batch(prompts(1), max_new=10, temperature=0.0)[0]
    done = LocalEngine(model, NEVER, 128).generate([request])[0]
    assert done.ids == plain(model, request, done).argmax(-1).tolist()
    assert done.logprobs == [0.0] * 10


def test_top_p_keeps_to_the_nucleus_and_renormalises() -> None:
    model, requests = llama(), batch(prompts(6), max_new=10, temperature=1.3, top_p=0.6)
    for request, done in zip(requests, LocalEngine(model, NEVER, 128).generate(requests), strict=True):
        chance = plain(model, request, done, temperature=1.3).exp()
        ranked, order = chance.sort(descending=True)
        inside = (ranked.cumsum(-1) - ranked) < 0.6
        for k, token in enumerate(done.ids):
            nucleus = order[k][inside[k]]
            assert token in nucleus
            want = (chance[k, token] / chance[k, nucleus].sum()).log().item()
            assert done.logprobs[k] == pytest.approx(want, abs=1e-5)


def test_every_row_has_a_nucleus_of_its_own() -> None:
    sharp, flat = torch.full((20,), 0.1 / 18), torch.arange(1.0, 21.0) / 210
    sharp[3], sharp[7] = 0.5, 0.4
    limit = torch.tensor([0.8, 0.55, 2.0], dtype=torch.float64).unsqueeze(1)
    got = _nucleus(torch.stack([sharp, flat, flat]), limit, 4)
    assert got[0].nonzero().flatten().tolist() == [3, 7]
    assert got[1].nonzero().flatten().tolist() == list(range(13, 20))  # 20 + ... + 14 are 119 of 210
    assert torch.equal(got[2], flat)


def test_samples_follow_the_distribution() -> None:
    logits = torch.tensor([0.5, -1.0, 2.0, -torch.inf, 0.0]).expand(20_000, 5)
    tokens, logprobs = draw(logits, [Request([1], 1, seed=s) for s in range(20_000)], [3] * 20_000)
    chance = logits[0].softmax(-1)
    shares = torch.bincount(torch.tensor(tokens), minlength=5) / 20_000
    assert (shares - chance).abs().max() < 0.015  # four standard errors
    assert shares[3] == 0
    assert np.exp(logprobs) == pytest.approx(chance[tokens].numpy(), rel=1e-5)


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=20), st.integers(0, 10_000))
def test_uniforms_lie_in_the_unit_interval_and_differ_by_seed_and_index(seeds: list[int], index: int) -> None:
    u = uniforms(seeds, [index] * len(seeds))
    assert ((u >= 0) & (u < 1)).all()
    assert len(set(u)) == len(set(seeds))
    assert (u != uniforms(seeds, [index + 1] * len(seeds))).all()


def test_uniforms_are_uniform_along_seeds_and_along_indices() -> None:
    for u in (uniforms(range(20_000), [0] * 20_000), uniforms([7] * 20_000, range(20_000))):
        counts = np.histogram(u, bins=20, range=(0, 1))[0]
        assert ((counts - 1000) ** 2 / 1000).sum() < 45  # chi-squared, 19 degrees of freedom, p = 0.0007
        assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.03


def test_an_end_token_stops_and_is_kept() -> None:
    model = llama()
    request = Request([1, 2, 3], 10, seed=1, sampling=Sampling(temperature=0.0))
    free = LocalEngine(model, NEVER, 128).generate([request])[0]
    done = LocalEngine(model, frozenset([free.ids[2]]), 128).generate([request])[0]
    at = free.ids.index(free.ids[2]) + 1
    assert (done.ids, done.finish, free.finish) == (free.ids[:at], "stop", "length")
    assert len(done.logprobs) == len(done.versions) == at


def test_a_full_context_cuts_or_refuses_and_leaves_others_alone() -> None:
    model = llama()
    engine = LocalEngine(model, NEVER, 20)
    requests = batch([[1] * 17, [2] * 20, [3] * 30, [4], [5] * 10], max_new=10)
    done = engine.generate(requests)
    assert [len(c.ids) for c in done] == [3, 0, 0, 10, 10]
    assert [c.finish for c in done] == ["context", "context", "context", "length", "length"]
    assert difference(model, [requests[0], requests[4]], [done[0], done[4]]) < 1e-5


def test_a_session_twice_in_a_call_is_answered_twice() -> None:
    engine = LocalEngine(llama(), NEVER, 128)
    done = engine.generate([Request([1, 2, 3], 4, seed=1, session=5), Request([1, 2, 9], 4, seed=1, session=5)])
    alone = engine.generate([Request([1, 2, 3], 4, seed=1), Request([1, 2, 9], 4, seed=1)])
    assert [c.ids for c in done] == [c.ids for c in alone]


@pytest.mark.parametrize("same", [True, False], ids=["trained in place", "another module"])
def test_update_takes_new_weights_and_drops_caches(same: bool) -> None:
    model = llama()
    engine = LocalEngine(model, NEVER, 128, version=3)
    request = Request([1, 2, 3, 4, 5], 6, seed=1, session=1)
    before = engine.generate([request])[0]
    new = model if same else llama()
    with torch.no_grad():
        for p in new.parameters():
            p.mul_(1.5)
    engine.update(new, 4)
    after = engine.generate([request])[0]
    assert (before.versions, after.versions) == ([3] * 6, [4] * 6)
    assert difference(new, [request], [after]) < 1e-5
    assert after.logprobs != before.logprobs


def test_an_engine_that_forgets_samples_the_same_bits_again() -> None:
    """As where a run goes on: what was evaluated before is not in the caches then."""
    model, requests = llama(), batch(prompts(9))
    fresh = LocalEngine(model, NEVER, 128).generate(requests)
    engine = LocalEngine(model, NEVER, 128)
    engine.generate(batch(prompts(5, seed=1)))
    engine.forget()
    assert [(c.ids, c.logprobs) for c in engine.generate(requests)] == [(c.ids, c.logprobs) for c in fresh]
    read = engine.tokens_in
    engine.generate(requests)
    assert engine.tokens_in == read
    engine.forget()
    engine.generate(requests)
    assert engine.tokens_in > read


def test_the_learners_module_is_left_as_it_was() -> None:
    model = llama().train()
    attention = model.config._attn_implementation
    engine = LocalEngine(model, NEVER, 128)
    engine.generate(batch(prompts(3)))
    assert model.training and model.config._attn_implementation == attention
    assert all(p.requires_grad and p.grad is None for p in model.parameters())
    model(torch.tensor([[1, 2, 3]])).logits.sum().backward()
    shared = {p.data_ptr() for p in model.parameters()}
    assert {p.data_ptr() for p in engine._model.parameters()} == shared


def test_bfloat16_works_on_a_copy_that_update_refreshes() -> None:
    model = llama()
    engine = LocalEngine(model, NEVER, 128, dtype="bfloat16")
    requests = batch(prompts(4))
    assert difference(model, requests, engine.generate(requests)) < 0.1
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(3)
    stale = difference(model, requests, engine.generate(requests))
    engine.update(model, 1)
    assert difference(model, requests, engine.generate(requests)) < 0.5 < stale


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_diverged_weights_are_an_engine_failure(temperature: float) -> None:
    model = llama()
    engine = LocalEngine(model, NEVER, 128)
    with torch.no_grad():
        model.model.norm.weight.fill_(torch.nan)
    engine.update(model, 1)
    with pytest.raises(EngineFailure, match="not finite"):
        engine.generate(batch(prompts(2), temperature=temperature))


def test_a_failed_pass_leaves_no_wrong_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    model = llama()
    engine, fresh = LocalEngine(model, NEVER, 128), LocalEngine(model, NEVER, 128)
    requests = [Request(p, 6, seed=1, session=i) for i, p in enumerate(prompts(4))]
    engine.generate(requests)
    longer = [Request([*r.prompt[: len(r.prompt) // 2], 3, 9, 3], 6, seed=1, session=r.session) for r in requests]
    calls = 0

    def breaking(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise EngineFailure("out of memory")
        return draw(*args)

    monkeypatch.setattr(rows, "draw", breaking)
    with pytest.raises(EngineFailure, match="out of memory"):
        engine.generate(longer)
    again, want = engine.generate(longer), fresh.generate(longer)
    assert [c.ids for c in again] == [c.ids for c in want]
    assert difference(model, longer, again) < 1e-5


def test_attention_that_the_engine_does_not_do_is_refused() -> None:
    sinks = GptOssForCausalLM(
        GptOssConfig(
            vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
            head_dim=8, intermediate_size=16, num_local_experts=2, num_experts_per_tok=1,
        )
    )  # fmt: skip
    with pytest.raises(ModelError, match="GptOssAttention"):
        LocalEngine(sinks, NEVER, 128)


@given(st.lists(st.integers(0, 2), max_size=12), st.lists(st.integers(0, 2), max_size=12))
def test_common_prefix_counts_equal_items_from_the_start(a: list[int], b: list[int]) -> None:
    n = common_prefix(a, b)
    assert a[:n] == b[:n]
    assert n == min(len(a), len(b)) or a[n] != b[n]


def test_images_are_refused_by_an_engine_of_text_alone_and_said_what_to_do_about() -> None:
    engine, red = LocalEngine(llama(), NEVER, 128), Media(b"red")
    with pytest.raises(
        ModelError, match=r"a prompt has \[image/png, 3 bytes, .*LocalEngine takes text alone.*leave_out"
    ):
        engine.generate([Request([1, red.placeholder], 2, seed=0, media=(red,))])
    with pytest.raises(ModelError, match="a prompt has an image or data"):  # whoever lost it beside the prompt
        engine.generate([Request([1, red.placeholder], 2, seed=0)])


def test_an_engine_that_sees_wants_the_content_of_every_placeholder() -> None:
    class Seeing(LocalEngine):
        sees = True

    engine, red = Seeing(llama(), NEVER, 128), Media(b"red")
    engine.check(Request([1, red.placeholder], 2, seed=0, media=(red,)))
    with pytest.raises(ValueError, match="stands for nothing that was seen"):
        engine.check(Request([1, red.placeholder], 2, seed=0))

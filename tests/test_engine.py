"""The local engine: what it samples, what it says about it, and what it keeps between calls."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)  # fmt: skip
from transformers.models.gpt_oss import GptOssConfig, GptOssForCausalLM

import longstride.engines.attention as attention
import longstride.engines.local as local
from longstride.core.errors import EngineFailure, ModelError
from longstride.engines.attention import Piece
from longstride.engines.base import Completion, Outcome, Request, Sampling
from longstride.engines.cache import Slot, common_prefix, shared_beginnings
from longstride.engines.fusion import fuse
from longstride.engines.local import LocalEngine
from longstride.engines.sampling import _nucleus, draw, uniforms
from longstride.models.tiny import TinyConfig, build_model

VOCABULARY, END = 50, 4
NEVER: frozenset[int] = frozenset()


def llama() -> Any:
    return build_model(TinyConfig(width=32, layers=2, heads=4, kv_heads=2, ffn=32, context=128), VOCABULARY, seed=1)


def _other(name: str) -> Any:
    shape: dict[str, Any] = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 32}
    shape |= {"num_hidden_layers": 3, "num_attention_heads": 4, "initializer_range": 0.2}
    grouped: dict[str, Any] = {"num_key_value_heads": 2, "head_dim": 12}
    sliding: dict[str, Any] = {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
    with torch.random.fork_rng():
        torch.manual_seed(2)
        match name:
            case "qwen3":
                model = Qwen3ForCausalLM(Qwen3Config(**shape, **grouped))
            case "sliding window":
                model = Qwen3ForCausalLM(Qwen3Config(**shape, **grouped, **sliding))
            case "mistral":  # its window stands in the configuration alone
                model = MistralForCausalLM(MistralConfig(**shape, **grouped, sliding_window=5))
            case "gpt_neox":
                model = GPTNeoXForCausalLM(GPTNeoXConfig(**shape))
            case _:
                small = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "initializer_range": 0.2}
                model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, **small))
    return model.eval()


def prompts(n: int, seed: int = 0, longest: int = 40) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randrange(VOCABULARY) for _ in range(rng.randint(1, longest))] for _ in range(n)]


def batch(ps: Sequence[list[int]], max_new: int = 6, **sampling: float) -> list[Request]:
    return [Request(p, max_new, seed=100 + i, sampling=Sampling(**sampling)) for i, p in enumerate(ps)]


def plain(model: Any, request: Request, completion: Completion, temperature: float = 1.0) -> torch.Tensor:
    """Log-probabilities of every token at each sampled place, from one ordinary forward pass: (sampled, vocabulary)."""
    with torch.no_grad():
        logits = model(torch.tensor([request.prompt + completion.ids]), use_cache=False).logits[0]
    return (logits[len(request.prompt) - 1 : -1] / temperature).log_softmax(-1)


def difference(model: Any, requests: Sequence[Request], completions: Sequence[Completion]) -> float:
    """Largest gap between the log-probabilities that the engine gave and those of ordinary forward passes."""
    return max(
        (plain(model, r, c)[range(len(c.ids)), c.ids] - torch.tensor(c.logprobs)).abs().max().item()
        for r, c in zip(requests, completions, strict=True)
    )


@pytest.mark.parametrize("name", ["llama", "qwen3", "sliding window", "mistral", "gpt_neox", "gpt2"])
def test_logprobs_are_those_of_a_plain_forward_pass(name: str) -> None:
    model = llama() if name == "llama" else _other(name)
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
    engine.generate([Request([5, 6, 0, 0], 1, seed=1, session=9)])
    assert engine.tokens_in == 12


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
    with pytest.raises(EngineFailure, match="cache_bytes"):
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

    monkeypatch.setattr(local, "draw", breaking)
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


def until_done(engine: LocalEngine, *tickets: int) -> dict[int, Outcome]:
    """Polls until the tickets are complete; all that was told meanwhile, in its order."""
    told: dict[int, Outcome] = {}
    while not set(tickets) <= told.keys():
        told |= dict(engine.poll())
    return told


def like(done: Outcome, want: Completion) -> bool:
    """Whether all is the same, log-probabilities up to rounding."""
    if not isinstance(done, Completion) or (done.ids, done.finish) != (want.ids, want.finish):
        return False
    return np.allclose(done.logprobs, want.logprobs, atol=1e-5)


def alone(model: Any, request: Request) -> Completion:
    return LocalEngine(model, NEVER, 128).generate([request])[0]


class TestPolling:
    def test_each_outcome_is_told_once_and_by_its_ticket(self) -> None:
        model = llama()
        engine, requests = LocalEngine(model, NEVER, 128), batch(prompts(5))
        assert engine.poll() == []
        tickets = [engine.submit(r) for r in requests]
        told = until_done(engine, *tickets)
        assert len(set(tickets)) == 5 and engine.poll() == []
        assert [told[t] for t in tickets] == LocalEngine(model, NEVER, 128).generate(requests)
        with pytest.raises(ValueError, match="at least one token"):
            engine.submit(Request([], 1, seed=0))

    def test_who_comes_later_joins_and_who_is_done_leaves(self) -> None:
        model = llama()
        engine = LocalEngine(model, NEVER, 128, max_batch=2)
        long, *short = batch(prompts(5, longest=9), max_new=3)
        long.max_new = 14
        first = engine.submit(long)
        engine.poll()
        tickets = [engine.submit(r) for r in short]
        polls, told = 1, {}
        while len(told) < 5:
            told |= dict(engine.poll())
            polls += 1
        assert list(told) == [*tickets, first] and polls == 14  # four times three tokens beside the fourteen
        assert [told[t].ids for t in [first, *tickets]] == [alone(model, r).ids for r in (long, *short)]  # pyright: ignore

    def test_generate_leaves_others_to_poll(self) -> None:
        model, (one, other) = llama(), batch(prompts(2))
        engine = LocalEngine(model, NEVER, 128)
        ticket = engine.submit(one)
        assert like(engine.generate([other])[0], alone(model, other))
        assert like(until_done(engine, ticket)[ticket], alone(model, one))

    def test_a_long_request_is_not_overtaken_for_ever(self) -> None:
        engine = LocalEngine(llama(), NEVER, 128, cache_bytes=4 * 32 * 256)
        tickets = [engine.submit(Request([1 + i] * 8, 4 + 2 * i, seed=i)) for i in range(4)]
        long = engine.submit(Request([9] * 70, 4, seed=9))
        later = [engine.submit(Request([1 + i] * 8, 4, seed=i)) for i in range(4)]
        assert list(until_done(engine, *later)) == [*tickets, long, *later]

    def test_a_request_that_can_never_fit_fails_and_the_others_go_on(self) -> None:
        engine = LocalEngine(llama(), NEVER, 128, cache_bytes=32 * 256)
        small, large = (engine.submit(Request([1] * n, 4, seed=1)) for n in (8, 60))
        told = until_done(engine, small, large)
        assert isinstance(told[large], EngineFailure) and isinstance(told[small], Completion)

    def test_what_is_cancelled_is_forgotten_and_leaves_its_room(self) -> None:
        model = llama()
        engine = LocalEngine(model, NEVER, 128, max_batch=1)
        requests = batch(prompts(3))
        going, waiting, kept = map(engine.submit, requests)
        engine.poll()
        for ticket in (going, waiting, 999):
            engine.cancel(ticket)
        assert like(until_done(engine, kept)[kept], alone(model, requests[2]))
        full = engine.submit(Request([1] * 128, 4, seed=1))
        engine.cancel(full)
        assert engine.poll() == []

    def test_a_session_that_is_released_on_its_way_goes_on(self) -> None:
        model, request = llama(), Request([1, 2, 3], 6, seed=1, session=4)
        engine = LocalEngine(model, NEVER, 128, max_batch=1)
        ticket = engine.submit(request)
        engine.poll()
        engine.release(4)
        assert like(until_done(engine, ticket)[ticket], alone(model, request))
        assert like(engine.generate([request])[0], alone(model, request))

    def test_new_weights_take_over_what_is_on_its_way(self) -> None:
        old, new = llama(), build_model(TinyConfig(width=32, layers=2, heads=4, kv_heads=2, ffn=32, context=128), 50, 2)
        engine = LocalEngine(old, NEVER, 128, version=3)
        requests = [Request([1, 2, 3] * 8, 9, seed=1, session=1), Request([7] * 5, 9, seed=2)]
        tickets = [engine.submit(r) for r in requests]
        for _ in range(4):
            engine.poll()
        engine.update(new, 4)
        told = until_done(engine, *tickets)
        for ticket, request in zip(tickets, requests, strict=True):
            done = told[ticket]
            assert isinstance(done, Completion) and done.versions == [3] * 4 + [4] * 5
            first, rest = (plain(m, request, done)[range(9), done.ids] for m in (old, new))
            assert np.allclose(done.logprobs, [*first[:4], *rest[4:]], atol=1e-5)

    def test_rows_of_another_pass_outlive_a_failed_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model = llama()
        engine = LocalEngine(model, NEVER, 128, max_batch=2)
        requests = batch(prompts(3))
        tickets = list(map(engine.submit, requests))
        with monkeypatch.context() as broken:
            broken.setattr(local, "draw", lambda *_: (_ for _ in ()).throw(EngineFailure("broken")))
            told = dict(engine.poll())
        assert list(told) == tickets[:2] and all(isinstance(o, EngineFailure) for o in told.values())
        assert like(until_done(engine, tickets[2])[tickets[2]], alone(model, requests[2]))

    def test_numbers_that_are_not_finite_do_not_stay_in_a_slot(self) -> None:
        model = llama()
        engine, requests = LocalEngine(model, NEVER, 128), batch(prompts(3))
        weight = model.model.layers[0].input_layernorm.weight
        kept = weight.detach().clone()
        with torch.no_grad():
            weight.fill_(torch.nan)
        with pytest.raises(EngineFailure, match="not finite"):
            engine.generate([Request([1] * 100, 4, seed=i, session=i) for i in range(3)])
        with torch.no_grad():
            weight.copy_(kept)
        assert difference(model, requests, engine.generate(requests)) < 1e-5


class TestSharing:
    @pytest.mark.parametrize("waves", [1, 2])
    def test_a_prompt_of_a_group_is_encoded_once(self, waves: int) -> None:
        model, prompt = llama(), [3 + i % 40 for i in range(50)]
        engine = LocalEngine(model, NEVER, 128)
        requests = [Request(prompt, 5, seed=i, session=i) for i in range(8)]
        size = 8 // waves
        done = [c for k in range(waves) for c in engine.generate(requests[k * size : (k + 1) * size])]
        assert engine.tokens_in == 50 + 7  # the last token of each is encoded for its logits
        assert difference(model, requests, done) < 1e-5
        assert [c.ids for c in done] == [alone(model, r).ids for r in requests]

    def test_a_beginning_is_taken_from_any_slot_that_has_it(self) -> None:
        model, head = llama(), list(range(40))
        engine = LocalEngine(model, NEVER, 128)
        engine.generate([Request([*head, 7, 7], 3, seed=0, session=0), Request([9] * 20, 3, seed=0, session=1)])
        engine.release(0)
        before, request = engine.tokens_in, Request([*head, 8, 8, 8], 3, seed=1, session=2)
        done = engine.generate([request])
        assert engine.tokens_in - before == 3 and difference(model, [request], done) < 1e-5
        before = engine.tokens_in
        engine.generate([Request([*head[:12], 49, 48, 47, 46, 45], 3, seed=1, session=3)])
        assert engine.tokens_in - before == 17  # not a whole block of 16 is shared

    @pytest.mark.parametrize(("cache_bytes", "capacity"), [(6 * 128 * 256, 128), (6 * 128 * 256 - 1, 32)])
    def test_slots_hold_the_whole_context_where_there_is_room_for_all(self, cache_bytes: int, capacity: int) -> None:
        engine = LocalEngine(llama(), NEVER, 128, max_batch=6, cache_bytes=cache_bytes)
        engine.generate([Request([1] * 20, 4, seed=0)])
        assert engine._cache.store.capacity == capacity

    def test_nothing_is_shared_over_an_update(self) -> None:
        engine, prompt = LocalEngine(llama(), NEVER, 128), [5] * 40
        engine.generate([Request(prompt, 1, seed=0)])
        engine.update(llama(), 1)
        engine.generate([Request(prompt, 1, seed=0)])
        assert engine.tokens_in == 80

    def test_weights_that_are_not_shared_change_by_update_alone(self) -> None:
        model, request = llama(), batch(prompts(1))[0]
        engine = LocalEngine(model, NEVER, 128, shared=False)
        before = engine.generate([request])[0]
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(1.5)
        assert like(engine.generate([request])[0], before)
        engine.update(model, 1)
        assert difference(model, [request], engine.generate([request])) < 1e-5


class TestCalls:
    """Which pieces go through one call, where a call costs as much as 60 scores."""

    @staticmethod
    def parts(*pieces: tuple[int, int, int]) -> list[list[int]]:
        return [[p.slot for p in part] for part in attention._joined([Piece(*p) for p in pieces], 60)]

    def test_single_queries_go_together_while_that_costs_little_reading(self) -> None:
        assert attention.READ == 4
        # a call each: 5 * 10 + 5 * 20 + 60; both in one: 2 * 5 * 20, and one slot idle: 3 * 5 * 20
        assert self.parts((0, 9, 1), (1, 19, 1)) == [[0, 1]]
        assert self.parts((0, 9, 1), (2, 19, 1)) == [[0], [2]]
        assert self.parts((0, 9, 1), (1, 22, 1)) == [[0], [1]]  # 5 * 33 + 60 against 2 * 5 * 23
        assert self.parts((0, 9, 1), (1, 21, 1)) == [[0, 1]]  # 5 * 32 + 60 against 2 * 5 * 22

    def test_slots_must_rise_and_scores_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.parts((1, 0, 5), (0, 0, 5)) == [[1], [0]]
        assert self.parts((0, 0, 5), (1, 0, 5)) == [[0, 1]]
        monkeypatch.setattr(attention, "SCORES", 2 * 5 * 5 - 1)
        assert self.parts((0, 0, 5), (1, 0, 5)) == [[0], [1]]


class TestTrunks:
    @pytest.mark.parametrize("name", ["llama", "qwen3", "sliding window"])
    def test_beginnings_read_once_give_what_each_row_gives_alone(
        self, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        model = llama() if name == "llama" else _other(name)
        heads = prompts(3, seed=7, longest=1)
        groups = [(head * 20 + [i] * (20 + 3 * i), 4 - i) for i, head in enumerate(heads)]
        requests = [Request(p, 6 + k, seed=k, session=None) for p, n in groups for k in range(n)]
        requests += batch(prompts(3))
        want = [alone(model, r) for r in requests]
        monkeypatch.setitem(local.SHARE, "cpu", 1)
        with mock.patch.object(
            attention._Trunks, "attend", autospec=True, side_effect=attention._Trunks.attend
        ) as used:
            done = LocalEngine(model, NEVER, 128).generate(requests)
        assert used.called
        assert all(like(*pair) for pair in zip(done, want, strict=True)) and difference(model, requests, done) < 1e-5

    def test_a_group_inside_a_larger_one_is_a_trunk_of_its_own(self) -> None:
        engine, head = LocalEngine(llama(), NEVER, 128), [1, 2] * 16
        slots = []
        for tail in ([5] * 20, [6] * 20, [5] * 20, [6] * 20):
            engine.generate([Request([*head, *tail], 1, seed=0, session=len(slots))])
            slots.append(engine._cache._sessions[len(slots)])
        assert shared_beginnings(slots, 1) == [([slots[0], slots[2]], 51), ([slots[1], slots[3]], 51)]
        engine.generate([Request([*head, 9], 1, seed=0, session=0)])
        assert (slots[0].trunk, slots[0].common) == (slots[2].trunk, 32)
        engine.generate([Request([9] * 20, 1, seed=0, session=2)])
        assert slots[2].trunk is not slots[0].trunk

    def test_rows_go_together_as_far_as_that_spares_reading(self) -> None:
        trunk = object()
        slots = [Slot(i, at=100, trunk=trunk, common=n) for i, n in enumerate([90, 10, 90])] + [Slot(3, at=100)]
        # two rows read 90 positions once instead of twice, and gather 11 each; a third would leave 10 in common
        assert shared_beginnings(slots, 90 - 2 * 22) == [([slots[0], slots[2]], 90)]
        assert shared_beginnings(slots, 90 - 2 * 22 + 1) == []

    def test_room_for_all_who_wait_is_made_at_once(self) -> None:
        engine = LocalEngine(llama(), NEVER, 128)
        requests = [Request([7] * 40, 3, seed=i, session=i % 5) for i in range(8)]
        with mock.patch.object(engine._cache.store, "resize", wraps=engine._cache.store.resize) as resize:
            engine.generate(requests)
        assert resize.call_count == 1 and engine._cache.store.slots == 5


class TestFusion:
    @pytest.mark.parametrize(("name", "faster"), [("qwen3", 4 * 3 + 1 + 3 + 3), ("gpt_neox", 0)])
    def test_known_modules_get_a_faster_forward_with_the_same_answer(self, name: str, faster: int) -> None:
        model, ids = _other(name), torch.arange(12).unsqueeze(0)
        engine = LocalEngine(model, NEVER, 128)
        assert sum("forward" in vars(m) for m in engine._model.modules()) == faster
        assert not any("forward" in vars(m) for m in model.modules())
        done = engine.generate([Request(ids[0].tolist(), 1, seed=0)])
        assert difference(model, [Request(ids[0].tolist(), 1, seed=0)], done) < 1e-5

    def test_what_looks_alike_and_answers_otherwise_keeps_its_own(self) -> None:
        class Shifted(torch.nn.Module):
            variance_epsilon = 1e-6

            def __init__(self) -> None:
                super().__init__()
                self.weight = torch.nn.Parameter(torch.zeros(8))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.nn.functional.rms_norm(x, (8,), 1 + self.weight, self.variance_epsilon)

        model = llama()
        for layer in model.model.layers:
            layer.mlp.act_fn = torch.nn.GELU()
        experts = torch.nn.Module()  # factors that are no layers
        for name in ("gate_proj", "up_proj", "down_proj"):
            experts.register_parameter(name, torch.nn.Parameter(torch.ones(2, 8, 8)))
        both = torch.nn.ModuleList([Shifted(), experts, *(layer.mlp for layer in model.model.layers)])
        fuse(both)
        assert not any("forward" in vars(m) for m in both.modules())

    def test_lower_precision_is_left_alone(self) -> None:
        engine = LocalEngine(llama(), NEVER, 128, dtype="bfloat16")
        assert not any("forward" in vars(m) for m in engine._model.modules())


class TestStop:
    def test_a_sequence_of_sampled_ids_ends_a_completion(self) -> None:
        model = llama()
        free = alone(model, Request([1, 2, 3], 12, seed=1))
        pairs = list(pairwise(free.ids))
        n = pairs.index(pairs[4]) + 2
        done = alone(model, Request([1, 2, 3], 12, seed=1, stop=((49, 49, 49), pairs[4])))
        assert (done.ids, done.finish, len(done.logprobs)) == (free.ids[:n], "stop", n)

    def test_what_stands_in_the_prompt_ends_nothing(self) -> None:
        model, request = llama(), Request([1, 2, 3], 6, seed=1)
        free = alone(model, request)
        request.stop = ((2, 3), (3, free.ids[0]))
        assert alone(model, request) == free


@given(st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_any_order_of_calls_gives_what_each_request_gives_alone(rng: random.Random) -> None:
    model = build_model(TinyConfig(width=8, layers=1, heads=2, kv_heads=1, ffn=8, context=128), VOCABULARY, seed=1)
    heads = [[rng.randrange(VOCABULARY) for _ in range(40)] for _ in range(2)]
    engine = LocalEngine(model, frozenset([END]), 128, max_batch=3, cache_bytes=rng.choice([3 * 64 * 64, 1 << 20]))
    fresh = LocalEngine(model, frozenset([END]), 128)
    asked: dict[int, Request] = {}
    told: dict[int, Outcome] = {}
    together = mock.patch.dict(local.SHARE, cpu=rng.choice([-1000, 512]))
    together.start()
    for _ in range(40):
        match rng.choice(["submit", "submit", "poll", "poll", "poll", "cancel", "release", "update"]):
            case "submit":
                prompt = rng.choice(heads)[: rng.randint(1, 40)] + [rng.randrange(VOCABULARY)] * rng.randint(0, 30)
                request = Request(prompt, rng.randint(1, 8), rng.randrange(99), rng.choice([None, 0, 1, 2]))
                asked[engine.submit(request)] = request
            case "poll":
                told |= dict(engine.poll())
            case "cancel" if asked:
                ticket = rng.choice(list(asked))
                engine.cancel(ticket)
                if ticket not in told:
                    del asked[ticket]
            case "release":
                engine.release(rng.randrange(3))
            case "update" if rng.random() < 0.3:
                engine.update(model, 0)
    told |= until_done(engine, *(asked.keys() - told.keys()))
    together.stop()
    for ticket, request in asked.items():
        assert like(told[ticket], fresh.generate([request])[0])
    assert told.keys() == asked.keys()
    assert not any(slot.busy for slot in engine._cache._slots)

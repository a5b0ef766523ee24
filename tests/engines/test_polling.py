"""The local engine while it is polled: requests that come and go, slots that are shared, sequences that stop."""

import random
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
import torch
from engine_models import (
    END,
    NEVER,
    VOCABULARY,
    alone,
    batch,
    difference,
    like,
    llama,
    plain,
    prompts,
    until_done,
)  # fmt: skip
from hypothesis import given, settings
from hypothesis import strategies as st

import longstride.engines.local as local
import longstride.engines.rows as rows
from longstride.core.errors import EngineFailure
from longstride.engines.base import Completion, Outcome, Request, Sampling
from longstride.engines.local import LocalEngine
from longstride.models.tiny import TinyConfig, build_model


class TestPolling:
    def test_each_outcome_is_returned_once_and_by_its_ticket(self) -> None:
        model = llama()
        engine, requests = LocalEngine(model, NEVER, 128), batch(prompts(5))
        assert engine.poll() == []
        tickets = [engine.submit(r) for r in requests]
        found = until_done(engine, *tickets)
        assert len(set(tickets)) == 5 and engine.poll() == []
        assert [found[t] for t in tickets] == LocalEngine(model, NEVER, 128).generate(requests)
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
        polls, found = 1, {}
        while len(found) < 5:
            found |= dict(engine.poll())
            polls += 1
        assert list(found) == [*tickets, first] and polls == 14  # four times three tokens beside the fourteen
        assert [found[t].ids for t in [first, *tickets]] == [alone(model, r).ids for r in (long, *short)]  # pyright: ignore

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
        found = until_done(engine, small, large)
        assert isinstance(found[large], EngineFailure) and isinstance(found[small], Completion)

    def test_what_is_cancelled_is_forgotten_and_frees_its_slot(self) -> None:
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
        found = until_done(engine, *tickets)
        for ticket, request in zip(tickets, requests, strict=True):
            done = found[ticket]
            assert isinstance(done, Completion) and done.versions == [3] * 4 + [4] * 5
            first, rest = (plain(m, request, done)[range(9), done.ids] for m in (old, new))
            assert np.allclose(done.logprobs, [*first[:4], *rest[4:]], atol=1e-5)

    def test_rows_of_another_pass_outlive_a_failed_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model = llama()
        engine = LocalEngine(model, NEVER, 128, max_batch=2)
        requests = batch(prompts(3))
        tickets = list(map(engine.submit, requests))
        with monkeypatch.context() as broken:
            broken.setattr(rows, "draw", lambda *_: (_ for _ in ()).throw(EngineFailure("broken")))
            found = dict(engine.poll())
        assert list(found) == tickets[:2] and all(isinstance(o, EngineFailure) for o in found.values())
        assert like(until_done(engine, tickets[2])[tickets[2]], alone(model, requests[2]))

    def test_a_sampling_that_cannot_be_drawn_from_fails_alone_where_the_prompt_was_read_before(self) -> None:
        engine, prompt = LocalEngine(llama(), NEVER, 128), [3 + i % 40 for i in range(20)]
        engine.generate([Request(prompt, 1, seed=0)])
        cold = engine.submit(Request(prompt, 1, seed=1, sampling=Sampling.model_construct(temperature=1e-300)))
        outcome = until_done(engine, cold)[cold]
        assert isinstance(outcome, EngineFailure) and not engine._going
        (done,) = engine.generate([Request(prompt, 1, seed=1)])
        assert like(done, alone(llama(), Request(prompt, 1, seed=1)))

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
        assert engine.tokens_in == 50
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
        assert engine.tokens_in - before == 5

    @pytest.mark.parametrize(("cache_bytes", "capacity"), [(6 * 128 * 256, 128), (6 * 128 * 256 - 1, 32)])
    def test_slots_hold_a_full_context_where_memory_is_enough_for_all(self, cache_bytes: int, capacity: int) -> None:
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
    found: dict[int, Outcome] = {}
    together = mock.patch.dict(local.SHARE, cpu=rng.choice([-1000, 512]))
    together.start()
    for _ in range(40):
        match rng.choice(["submit", "submit", "poll", "poll", "poll", "cancel", "release", "update"]):
            case "submit":
                prompt = rng.choice(heads)[: rng.randint(1, 40)] + [rng.randrange(VOCABULARY)] * rng.randint(0, 30)
                request = Request(prompt, rng.randint(1, 8), rng.randrange(99), rng.choice([None, 0, 1, 2]))
                asked[engine.submit(request)] = request
            case "poll":
                found |= dict(engine.poll())
            case "cancel" if asked:
                ticket = rng.choice(list(asked))
                engine.cancel(ticket)
                if ticket not in found:
                    del asked[ticket]
            case "release":
                engine.release(rng.randrange(3))
            case "update" if rng.random() < 0.3:
                engine.update(model, 0)
    found |= until_done(engine, *(asked.keys() - found.keys()))
    together.stop()
    for ticket, request in asked.items():
        assert like(found[ticket], fresh.generate([request])[0])
    assert found.keys() == asked.keys()
    assert not any(slot.busy for slot in engine._cache._slots)

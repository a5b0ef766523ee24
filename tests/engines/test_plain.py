"""The plain engine: any causal model, by its own passes and caches, with the promises of the local one."""

import random
import warnings
from typing import Any

import pytest
import torch
from engine_models import NEVER, batch, difference, llama, other, plain, prompts
from families import make
from transformers import BertConfig, BertLMHeadModel

import longstride.engines.rows as rows
from longstride.core.errors import EngineFailure, LongstrideWarning, ModelError
from longstride.engines.base import Completion, Request
from longstride.engines.config import Local
from longstride.engines.fit import misfit, misfit_of
from longstride.engines.local import LocalEngine
from longstride.engines.plain import PlainEngine, Way
from longstride.models.load import Policy

MODELS = {
    "llama": (llama, Way.PADDED),
    "sliding window": (lambda: other("sliding window"), Way.PADDED),
    "gpt-oss": (lambda: make("gpt-oss"), Way.PADDED),
    "Qwen3.5": (lambda: make("Qwen3.5"), Way.PADDED),
    "Mamba": (lambda: make("Mamba"), Way.LEVEL),
    "MiniMax": (lambda: make("MiniMax"), Way.WHOLE),
}


def played(engine: PlainEngine, requests: list[Request]) -> list[Completion]:
    """Requests of which half come while the others are under way."""
    half = len(requests) // 2
    tickets, found = list(map(engine.submit, requests[:half])), {}
    for _ in range(3):
        found |= dict(engine.poll())
    tickets += map(engine.submit, requests[half:])
    while len(found) < len(requests):
        found |= dict(engine.poll())
    assert all(isinstance(done, Completion) for done in found.values())
    return [found[ticket] for ticket in tickets]  # pyright: ignore[reportReturnType]


def mixed(n: int = 8) -> list[Request]:
    """Requests that end at different times, two of them with one prompt."""
    rng = random.Random(0)
    asked = [Request(p, rng.randint(1, 12), seed=k) for k, p in enumerate(prompts(n))]
    return [*asked, Request(asked[0].prompt, 5, seed=99)]


@pytest.mark.parametrize("name", MODELS)
def test_rows_that_come_and_go_get_what_they_get_alone_and_what_an_ordinary_pass_says(name: str) -> None:
    make_it, way = MODELS[name]
    model, requests = make_it(), mixed()
    engine = PlainEngine(model, NEVER, 128)
    done = played(engine, requests)
    assert engine.way is way
    assert difference(model, requests, done) < 1e-5
    assert [c.ids for c in done] == [engine.generate([r])[0].ids for r in requests]


def test_it_samples_what_the_local_engine_samples() -> None:
    model = llama()
    requests = batch([*prompts(6), [7] * 35], max_new=10, temperature=0.8, top_p=0.9)
    plainly, locally = (kind(model, frozenset([4]), 40).generate(requests) for kind in (PlainEngine, LocalEngine))
    assert [(c.ids, c.finish) for c in plainly] == [(c.ids, c.finish) for c in locally]
    assert [x for c in plainly for x in c.logprobs] == pytest.approx([x for c in locally for x in c.logprobs], abs=1e-5)
    assert {c.finish for c in plainly} == {"stop", "length", "context"}


def test_a_stop_sequence_ends_a_row() -> None:
    engine, free = PlainEngine(llama(), NEVER, 128), Request([1, 2, 3], 10, seed=1)
    ids = engine.generate([free])[0].ids
    done = engine.generate([Request([1, 2, 3], 10, seed=1, stop=((ids[3], ids[4]),))])[0]
    assert (done.ids, done.finish) == (ids[:5], "stop")


def test_a_prompt_of_several_rows_is_read_once() -> None:
    engine = PlainEngine(llama(), NEVER, 128)
    engine.generate([Request([5, 6, 7, 8], 3, seed=k) for k in range(4)] + [Request([5, 6], 3, seed=9)])
    assert (engine.tokens_in, engine.tokens_out) == (6, 15)


def test_positions_that_are_padding_for_all_are_given_back() -> None:
    """Else the caches of an engine that is never idle would grow without end."""
    engine = PlainEngine(llama(), NEVER, 128)
    for k in range(6):
        engine.submit(Request([1 + k] * 20, 12, seed=k))
        for _ in range(8):
            engine.poll()
    (one,) = engine._batches
    assert one.cache.get_seq_length() <= 32


def test_rows_wait_where_their_caches_would_not_fit() -> None:
    model, requests = llama(), [Request([1 + k] * 10, 10, seed=k) for k in range(5)]
    bytes_per_token = 2 * 2 * 2 * 8 * 4  # layers, keys and values, heads, size, float32
    engine = PlainEngine(model, NEVER, 128, cache_bytes=2 * 20 * bytes_per_token)
    for request in requests:
        engine.submit(request)
    done: dict[int, Any] = {}
    while len(done) < 5:
        done |= dict(engine.poll())
        assert len(engine._going) <= 2
    assert difference(model, requests, [done[k] for k in range(5)]) < 1e-5
    with pytest.raises(EngineFailure, match="engine.cache_gigabytes"):
        engine.generate([Request([1] * 30, 20, seed=0)])


@pytest.mark.parametrize("name", ["llama", "Qwen3.5", "MiniMax"])
def test_update_and_forget_go_on_with_what_is_under_way(name: str) -> None:
    model, new = MODELS[name][0](), MODELS[name][0]()
    with torch.no_grad():
        for p in new.parameters():
            p.mul_(1.3)
    engine, request = PlainEngine(model, NEVER, 128, version=3), Request([1, 2, 3, 4, 5], 6, seed=1)
    want = engine.generate([request])[0]
    ticket = engine.submit(request)
    engine.poll()
    engine.forget()
    engine.poll()
    engine.update(new, 4)
    done: dict[int, Any] = {}
    while ticket not in done:
        done |= dict(engine.poll())
    found = done[ticket]
    assert found.versions == [3, 3, 4, 4, 4, 4] and found.ids[:2] == want.ids[:2]
    assert found.logprobs[:2] == pytest.approx(want.logprobs[:2], abs=1e-5)
    chance = plain(new, request, found)[range(2, 6), found.ids[2:]]
    assert found.logprobs[2:] == pytest.approx(chance.tolist(), abs=1e-5)


def test_an_engine_that_forgets_samples_the_same_bits_again() -> None:
    model, requests = make("gpt-oss"), mixed()
    engine = PlainEngine(model, NEVER, 128)
    first = played(engine, requests)
    engine.submit(Request([3] * 9, 20, seed=1))
    engine.poll()
    engine.cancel(len(requests))
    engine.forget()
    assert [(c.ids, c.logprobs) for c in played(engine, requests)] == [(c.ids, c.logprobs) for c in first]


def test_a_cancelled_row_leaves_and_the_others_go_on() -> None:
    model, requests = llama(), batch(prompts(3), max_new=6)
    engine = PlainEngine(model, NEVER, 128)
    tickets = list(map(engine.submit, requests))
    engine.poll()
    engine.cancel(tickets[1])
    done: dict[int, Any] = {}
    while len(done) < 2:
        done |= dict(engine.poll())
    assert done.keys() == {tickets[0], tickets[2]} and not engine._going
    assert difference(model, requests[::2], [done[tickets[0]], done[tickets[2]]]) < 1e-5


def test_a_failed_pass_fails_its_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    model, request = llama(), Request([1, 2, 3], 4, seed=1)
    engine = PlainEngine(model, NEVER, 128)
    engine.submit(Request([5, 6], 9, seed=2))
    engine.poll()
    with monkeypatch.context() as broken:
        broken.setattr(rows, "draw", lambda *_: (_ for _ in ()).throw(EngineFailure("broken")))
        assert [str(outcome) for _, outcome in engine.poll()] == ["broken"]
    assert difference(model, [request], engine.generate([request])) < 1e-5


def test_the_learners_module_is_left_as_it_was() -> None:
    model = make("gpt-oss").train()
    attention, values = model.config._attn_implementation, [p.clone() for p in model.parameters()]
    engine = PlainEngine(model, NEVER, 128)
    engine.generate(mixed(3))
    assert model.training and model.config._attn_implementation == attention
    assert all(torch.equal(p, v) and p.requires_grad for p, v in zip(model.parameters(), values, strict=True))
    assert {p.data_ptr() for p in engine._model.parameters()} == {p.data_ptr() for p in model.parameters()}
    apart = PlainEngine(model, NEVER, 128, dtype="bfloat16")
    assert difference(model, mixed(3), apart.generate(mixed(3))) < 0.1
    assert {p.dtype for p in model.parameters()} == {torch.float32}


def test_a_model_that_looks_ahead_is_refused() -> None:
    shape: dict[str, Any] = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 32, "initializer_range": 0.3}
    model = BertLMHeadModel(BertConfig(num_hidden_layers=2, num_attention_heads=2, **shape)).eval()
    with pytest.raises(ModelError, match="BertLMHeadModel change with what comes later"):
        PlainEngine(model, NEVER, 128)


class Chat:
    """What an engine needs of a chat format."""

    end_ids = NEVER


def policy(model: Any) -> Policy:
    return Policy("tiny", model, None, Chat(), 128)  # pyright: ignore[reportArgumentType]


class TestChoice:
    def test_a_model_that_the_local_engine_cannot_run_is_sampled_plainly_and_a_line_says_so(self) -> None:
        with pytest.warns(
            LongstrideWarning, match=r"'tiny' \(GptOssForCausalLM\) is sampled plainly.*two thirds of the speed"
        ):
            assert isinstance(Local().make(policy(make("gpt-oss")), 0, []), PlainEngine)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert isinstance(Local().make(policy(llama()), 0, []), LocalEngine)

    def test_a_setting_forces_it_or_forbids_it(self) -> None:
        with pytest.warns(LongstrideWarning, match="sampled plainly"):
            assert isinstance(Local(plain=True).make(policy(llama()), 0, []), PlainEngine)
        with pytest.raises(ModelError, match=r"GptOssAttention asks for s_aux; with engine.plain=true"):
            Local(plain=False).make(policy(make("gpt-oss")), 0, [])

    def test_graphs_are_of_the_local_engine(self) -> None:
        with pytest.raises(ValueError, match="leave one of them out"):
            Local(plain=True, graphs=True)
        with pytest.raises(ModelError, match="s_aux"):
            Local(graphs=True).make(policy(make("gpt-oss")), 0, [])

    @pytest.mark.parametrize(
        "name, reason",
        [
            ("Llama 2, 3", ""),
            ("Qwen3, experts", ""),
            ("gpt-oss", "s_aux"),
            ("Gemma 2", "softcap"),
            ("Qwen3.5", "its attention cannot be replaced"),
            ("LFM2", "layers of conv"),
            ("Llama 4, text", "layers of chunked_attention"),
        ],
    )
    def test_a_run_settles_it_from_the_configuration_alone(self, name: str, reason: str, tmp_path) -> None:
        make(name).config.save_pretrained(tmp_path)
        found = misfit_of(str(tmp_path))
        assert reason in found and bool(found) == bool(reason)
        assert Local().settled(model=str(tmp_path)).plain is bool(reason)
        assert Local(plain=True).settled(model=str(tmp_path)).plain is True

    @pytest.mark.parametrize("name, captured", [("Llama 2, 3", True), ("Qwen3, experts", False), ("gpt-oss", False)])
    def test_passes_are_captured_on_a_card_where_they_do_not_depend_on_numbers(
        self, name: str, captured: bool, tmp_path
    ) -> None:
        make(name).config.save_pretrained(tmp_path)
        assert Local().settled("cuda", str(tmp_path)).graphs is captured
        assert Local().settled("cpu", str(tmp_path)).graphs is False
        assert Local(graphs=not captured).settled("cuda", str(tmp_path)).graphs is not captured

    def test_a_model_of_layers_that_only_look_like_attention_does_not_fit(self) -> None:
        assert misfit(make("Granite 4, hybrid")) == "it has layers of linear_attention"
        assert not misfit(make("OLMo 3"))

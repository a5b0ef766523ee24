"""The HTTP engine and its preflight, against a server on loopback that speaks the completions form on top of the local
engine and fails as it is told, and against a real one that has no token ids."""

import gc
import json
import socket
import time
from typing import Any

import pytest
from completions_server import Server, batch, tiny
from helpers import SLOW, eventually
from judge_server import Counted, cut_off, endless, hang, response

from longstride.core.component import build
from longstride.core.errors import ConfigError, EngineFailure
from longstride.engines.base import Completion, Request, Sampling
from longstride.engines.config import HTTP
from longstride.engines.http import HTTPEngine
from longstride.engines.local import LocalEngine
from longstride.engines.preflight import preflight

KEY = "sk-test-0123456789abcdef"
TEMPERATURE, NUCLEUS = Sampling(temperature=0.6), Sampling(temperature=0.6, top_p=0.7)


@pytest.fixture(scope="module")
def policy():
    return tiny(1)


@pytest.fixture(scope="module")
def _server(policy):
    server = Server(policy)
    yield server
    server.stop()


@pytest.fixture
def server(_server, monkeypatch):
    monkeypatch.setattr("longstride.core.http.FIRST_WAIT", 0.001)
    monkeypatch.setattr("longstride.engines.preflight.PROBE_TOKENS", 16)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    _server.reset()
    return _server


def config_of(server: Server, **settings: Any) -> HTTP:
    return build(HTTP, {"url": f"{server.root}/v1", "model": "m", "timeout": 5.0} | settings)


def engine_of(server: Server, **settings: Any) -> HTTPEngine:
    return HTTPEngine(config_of(server, **settings), server.policy, version=7)


def failure(server: Server, **settings: Any) -> str:
    with pytest.raises(EngineFailure) as caught:
        engine_of(server, **settings).generate(batch(server.policy, 1))
    return str(caught.value)


class TestCompletion:
    @pytest.mark.parametrize("sampling", [{}, {"temperature": 0.6, "top_p": 0.7}, {"temperature": 0.0}])
    def test_it_is_the_local_engine_behind_it_token_for_token(self, server, policy, sampling):
        requests = batch(policy, **sampling)
        local = LocalEngine(policy.model, policy.chat.end_ids, policy.max_context).generate(requests)
        engine = engine_of(server, concurrency=4)
        remote = engine.generate(requests)
        assert [(c.ids, c.finish) for c in remote] == [(c.ids, c.finish) for c in local]
        assert [c.versions for c in remote] == [[7] * len(c.ids) for c in local]
        for ours, theirs in zip(remote, local, strict=True):
            assert ours.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)
        assert engine.tokens_in == sum(len(r.prompt) for r in requests)
        assert engine.tokens_out == sum(len(c.ids) for c in local)

    def test_the_context_ends_a_turn_that_it_cuts_and_a_prompt_that_fills_it_is_not_sent(self, server, policy):
        requests = [Request([5] * (policy.max_context - room), 8, seed=1) for room in (3, 0)]
        local = LocalEngine(policy.model, policy.chat.end_ids, policy.max_context).generate(requests)
        remote = engine_of(server).generate(requests)
        assert [(c.ids, c.finish) for c in remote] == [(c.ids, c.finish) for c in local]
        assert remote[1].finish == "context" and [b["max_tokens"] for b in server.bodies] == [3]

    @pytest.mark.parametrize(("reason", "finish"), [("length", "context"), ("stop", "length")])
    def test_a_server_that_stops_early_ran_out_of_context_or_met_an_end_token_of_its_own(self, server, reason, finish):
        server.change = {"token_ids": [5, 6], "logprobs": {"token_logprobs": [-1.0, -1.0]}, "finish_reason": reason}
        assert engine_of(server).generate(batch(server.policy, 1))[0].finish == finish

    def test_ids_and_every_setting_of_the_distribution_are_sent(self, server, policy):
        (request,) = batch(policy, 1, temperature=0.5, top_p=0.9)
        engine_of(server).generate([request])
        assert server.bodies == [
            {
                "model": "m", "prompt": request.prompt, "max_tokens": 20, "seed": 100, "temperature": 0.5, "top_p": 0.9,
                "top_k": -1, "min_p": 0, "repetition_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0,
                "stop_token_ids": sorted(policy.chat.end_ids), "logprobs": 0, "return_token_ids": True,
            }
        ]  # fmt: skip

    def test_no_more_requests_are_under_way_than_allowed(self, server, policy, monkeypatch):
        counted, engine = Counted(), engine_of(server, concurrency=3)
        monkeypatch.setattr("longstride.core.http.post", counted)
        tickets = [engine.submit(request) for request in batch(policy)]
        counted.free.set()
        told = []
        while len(told) < len(tickets):
            told += engine.poll()
        assert counted.most == 3 < len(tickets)

    def test_the_key_is_sent_and_taken_out_of_what_is_raised(self, server, policy, monkeypatch):
        monkeypatch.setenv("ENGINE_KEY", f" {KEY}\n")
        server.script = [response(f"{KEY} is no key of ours", 401)]
        said = failure(server, key_env="ENGINE_KEY")
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
        assert "status 401 with '[key] is no key of ours'" in said and KEY not in said
        monkeypatch.delenv("ENGINE_KEY")
        with pytest.raises(ConfigError, match="ENGINE_KEY"):
            engine_of(server, key_env="ENGINE_KEY").generate(batch(policy, 1))


class TestFailure:
    @pytest.mark.parametrize("odd", [response("", 500), response("", 503), response("", 429), cut_off, hang])
    def test_what_was_not_answered_is_sent_again_as_it_was(self, server, policy, odd):
        server.script = [odd, odd]
        timeout = 1.0 if odd is hang else SLOW
        (done,) = engine_of(server, retries=2, timeout=timeout).generate(batch(policy, 1))
        assert done.ids and len(server.bodies) == 3
        assert server.bodies[0] == server.bodies[1] == server.bodies[2]

    @pytest.mark.parametrize(
        ("odd", "said"),
        [(response("no", 500), "status 500 with 'no'"), (hang, "nothing whole came within 0.2 s"), (cut_off, "")],
    )
    def test_after_the_last_retry_it_is_a_failure(self, server, odd, said):
        server.always = odd
        message = failure(server, retries=1, timeout=0.2)
        assert said in message and "2 requests sent" in message and len(server.bodies) == 2

    def test_bytes_that_trickle_are_late_as_a_whole(self, server):
        server.always = endless(b" ", pause=0.05)
        began = time.monotonic()
        assert "nothing whole came" in failure(server, retries=0, timeout=0.3)
        assert time.monotonic() - began < SLOW

    def test_a_server_that_is_not_there_is_a_failure(self, server, policy):
        with socket.create_server(("127.0.0.1", 0)) as free:
            url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(EngineFailure, match="look after the server"):
            HTTPEngine(HTTP(url=url, model="m", retries=0), policy).generate(batch(policy, 1))

    def test_one_failure_does_not_wait_for_the_others(self, server, policy):
        server.script, server.always = [response("", 400)], hang
        began = time.monotonic()
        with pytest.raises(EngineFailure, match="status 400"):
            engine_of(server).generate(batch(policy, 6))
        assert time.monotonic() - began < SLOW

    @pytest.mark.parametrize(
        ("odd", "said"),
        [
            (response("", 404), "status 404"),
            (response("<html>"), "Invalid JSON"),
            (response([1]), "the response: Input should be an object"),
            (response({"choices": []}), "choices.0.token_ids"),
            (response("[" * 50_000), "Invalid JSON"),
            (endless(b" " * 65_536), "a response of more than"),
        ],
    )
    def test_what_is_no_completion_is_refused_at_once(self, server, odd, said):
        server.always = odd
        assert said in failure(server) and len(server.bodies) == 1

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"token_ids": None}, "choices.0.token_ids.*takes and returns token ids"),
            ({"token_ids": ["5"]}, "choices.0.token_ids.0"),
            ({"token_ids": [-1]}, "choices.0.token_ids.0"),
            ({"prompt_token_ids": None}, "choices.0.prompt_token_ids"),
            ({"prompt_token_ids": [1, 5]}, r"another prompt \(2 ids\)"),
            ({"logprobs": None}, "choices.0.logprobs.token_logprobs"),
            ({"logprobs": {"token_logprobs": [None]}}, "choices.0.logprobs.token_logprobs.0"),
            ({"logprobs": {"token_logprobs": [3.5]}}, "choices.0.logprobs.token_logprobs.0"),
            (
                {"logprobs": {"token_logprobs": [-1e308]}},
                "choices.0.logprobs.token_logprobs.0.* to -100",
            ),
            ({"logprobs": {"token_logprobs": [0.5]}}, "choices.0.logprobs.token_logprobs.0"),
            ({"logprobs": {"token_logprobs": []}}, "and 0 log-probabilities"),
            ({"token_ids": [], "logprobs": {"token_logprobs": []}}, "0 ids and 0 log-probabilities"),
            ({"token_ids": [5] * 21, "logprobs": {"token_logprobs": [-1.0] * 21}}, "expected 1 to 20"),
            ({"token_ids": [99_999], "logprobs": {"token_logprobs": [-1.0]}}, "id 99999 is none of the policy's"),
            ({"finish_reason": "abort"}, "choices.0.finish_reason"),
        ],
    )
    def test_a_completion_that_cannot_be_trusted_is_refused(self, server, change, said):
        server.change = change
        with pytest.raises(EngineFailure, match=said):
            engine_of(server).generate(batch(server.policy, 1))

    def test_a_log_probability_that_is_no_number_is_refused(self, server):
        whole = server.completion({"prompt": [5], "max_tokens": 1, "seed": 0, "temperature": 1, "top_p": 1})
        whole["choices"][0]["logprobs"]["token_logprobs"] = [float("nan")]
        server.always = response(json.dumps(whole))
        assert "token_logprobs.0" in failure(server)

    def test_what_rounding_adds_to_a_certain_token_is_taken_off(self, server):
        server.change = {"token_ids": [5], "logprobs": {"token_logprobs": [1e-4]}}
        (done,) = engine_of(server).generate(batch(server.policy, 1))
        assert done.logprobs == [0.0]

    @pytest.mark.parametrize(
        "said", ["[" * 60_000, '{"tokens": ' + "[" * 200 + "]" * 200 + "}", '{"tokens": 1e999}', "\xff"]
    )
    def test_a_server_that_answers_tokenize_with_anything_is_asked_for_completions(self, server, said):
        server.always = response(said)
        engine_of(server).check_tokenizer()

    def test_a_server_that_goes_on_after_an_end_token_is_refused(self, server, policy):
        ids = [min(policy.chat.end_ids), 5]
        server.change = {"token_ids": ids, "logprobs": {"token_logprobs": [-1.0, -1.0]}}
        assert "stop_token_ids" in failure(server)


class TestPolling:
    def test_what_failed_is_told_beside_what_did_not(self, server, policy):
        server.script = [response("no", 400)]
        engine = engine_of(server, concurrency=1)
        tickets, told = [engine.submit(r) for r in batch(policy, 3)], []
        while len(told) < 3:
            told += engine.poll()
        assert [t for t, _ in told] == tickets and engine.poll() == []
        assert isinstance(told[0][1], EngineFailure) and all(isinstance(o, Completion) for _, o in told[1:])
        with pytest.raises(ValueError, match="at least one token"):
            engine.submit(Request([], 1, seed=0))

    def test_requests_go_on_between_polls_and_a_poll_comes_back_soon(self, server, policy):
        engine = engine_of(server)
        server.script, server.always, told = [None], hang, []
        ticket = engine.submit(batch(policy, 1)[0])
        eventually(lambda: server.bodies)
        late = engine.submit(batch(policy, 1)[0])
        eventually(lambda: told.extend(engine.poll()) or told)
        assert engine.poll() == [] and [t for t, _ in told] == [ticket]
        engine.cancel(late)
        engine.cancel(999)
        assert engine.poll() == []

    def test_connections_are_used_again_and_closed(self, server, policy):
        engine = engine_of(server)
        for _ in range(3):
            engine.generate(batch(policy, 1))
        assert len(server.clients) == 1
        engine.close()
        engine.close()
        assert not engine._connected().thread.is_alive()

    def test_an_engine_that_is_forgotten_ends_its_thread(self, server, policy):
        engine = engine_of(server)
        engine.generate(batch(policy, 1))
        thread = engine._connected().thread
        del engine
        gc.collect()
        thread.join(SLOW)
        assert not thread.is_alive()

    def test_stop_sequences_are_sent_where_a_server_knows_them_and_cut_at_where_not(self, server, policy):
        (request,) = batch(policy, 1)
        local = LocalEngine(policy.model, policy.chat.end_ids, policy.max_context)
        free = local.generate([request])[0]
        for stop in (((free.ids[3],),), (tuple(free.ids[2:4]), (7, 7, 7))):
            request.stop = stop
            (want,), (done,) = local.generate([request]), engine_of(server).generate([request])
            assert (done.ids, done.finish) == (want.ids, "stop") and len(done.ids) < len(free.ids)
            assert done.logprobs == pytest.approx(want.logprobs, abs=1e-5)
        assert free.ids[3] in server.bodies[0]["stop_token_ids"]
        assert server.bodies[1]["stop_token_ids"] == sorted(policy.chat.end_ids)


class TestPreflight:
    @pytest.mark.parametrize("sampling", [Sampling(), NUCLEUS, Sampling(temperature=0.0)])
    def test_an_engine_that_is_right_passes(self, server, policy, sampling):
        local = LocalEngine(policy.model, policy.chat.end_ids, policy.max_context)
        for engine in (local, engine_of(server)):
            report = preflight(engine, policy, sampling)
            assert report.max_gap < 1e-5 and report.agreement == 1 and report.tokens > 20

    @pytest.mark.parametrize(
        ("reading", "sampling", "change"),
        [
            (lambda asked: Sampling(), TEMPERATURE, "set sampling.temperature = 1, or"),
            (lambda asked: Sampling(), NUCLEUS, "set sampling.temperature = 1 and sampling.top_p = 1, or"),
            (lambda asked: Sampling(temperature=asked.temperature), NUCLEUS, "set sampling.top_p = 1, or"),
        ],
    )
    def test_log_probabilities_of_another_distribution_are_refused(self, server, policy, reading, sampling, change):
        server.reading = reading
        with pytest.raises(ConfigError, match=change):
            preflight(engine_of(server), policy, sampling)
        preflight(engine_of(server), policy, Sampling())

    def test_rounding_of_a_lower_precision_is_not_refused_and_hides_nothing(self, server, policy):
        server.noise = 0.02
        assert 0.01 < preflight(engine_of(server), policy, NUCLEUS).mean_gap < 0.03
        server.reading = lambda asked: Sampling(temperature=asked.temperature)
        with pytest.raises(ConfigError, match="set sampling.top_p = 1, or"):
            preflight(engine_of(server), policy, Sampling(top_p=0.95))

    @pytest.mark.parametrize("sampling", [Sampling(), NUCLEUS, Sampling(temperature=0.0)])
    def test_other_weights_are_refused(self, server, sampling):
        with pytest.raises(ConfigError, match="serve 'tiny' itself"):
            preflight(engine_of(server), tiny(2), sampling)

    def test_an_engine_is_made_when_all_settings_passed(self, server, policy):
        engine = config_of(server).make(policy, 3, [NUCLEUS])
        assert engine.version == 3 and engine.generate(batch(policy, 1))[0].ids
        server.reading = lambda asked: Sampling()
        with pytest.raises(ConfigError, match="sampling.temperature"):
            config_of(server).make(policy, 3, [NUCLEUS])

    def test_a_server_with_a_shorter_context_is_found_out_and_can_be_told(self, server, policy):
        server.context = 100
        with pytest.raises(ConfigError, match="set engine.context.*maximum context length is 100"):
            config_of(server).make(policy, 0, [Sampling()])
        engine = config_of(server, context=100).make(policy, 0, [Sampling()])
        assert engine.generate([Request([5] * 100, 1, seed=0)])[0].finish == "context"


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8000", "ftp://host/v1", "http://me@host/v1", "http://host/v1?a=b", "http://host:x"]
)
def test_what_is_no_address_is_refused(url):
    with pytest.raises(ConfigError, match="url"):
        build(HTTP, {"url": url, "model": "m"})

"""vLLM as a library, against one that keeps to the interface of vLLM 0.33 on top of the local engine."""

import base64
import pickle
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from completions_server import batch, tiny
from vllm_server import SHARED, VERSION, install

from longstride.core.component import build
from longstride.core.errors import ConfigError, EngineFailure, MissingExtra
from longstride.engines.base import Completion, Request, Sampling
from longstride.engines.config import VLLM, EngineConfig
from longstride.engines.local import LocalEngine
from longstride.engines.preflight import preflight
from longstride.engines.vllm_engine import VLLMEngine
from longstride.models.load import Policy


class Inner:
    """`LLM.llm_engine`."""

    def __init__(self, policy: Policy) -> None:
        self.local = LocalEngine(policy.model, policy.chat.end_ids, policy.max_context)
        self.tickets: dict[int, str] = {}
        self.params: list[Any] = []
        self.dead = False
        self.odd: dict[str, Any] = {}
        self.engine_core = SimpleNamespace(shutdown=lambda: None)

    def add_request(self, request_id: str, prompt: Any, params: Any) -> None:
        self.params.append(params)
        stop = tuple((i,) for i in params.stop_token_ids)
        sampling = Sampling(temperature=params.temperature, top_p=params.top_p)
        asked = Request(prompt["prompt_token_ids"], params.max_tokens, params.seed, sampling=sampling, stop=stop)
        self.tickets[self.local.submit(asked)] = request_id

    def abort_request(self, ids: list[str]) -> None:
        for ticket in [t for t, name in self.tickets.items() if name in ids]:
            self.local.cancel(ticket)

    def step(self) -> list[Any]:
        if self.dead:
            raise RuntimeError("EngineCore encountered an issue")
        found = []
        for ticket, done in self.local.poll():
            assert isinstance(done, Completion)
            logprobs = [{i: SimpleNamespace(logprob=p)} for i, p in zip(done.ids, done.logprobs, strict=True)]
            reason = "stop" if done.finish == "stop" else "length"
            said = {"token_ids": done.ids, "logprobs": logprobs, "finish_reason": reason} | self.odd
            found.append(
                SimpleNamespace(request_id=self.tickets[ticket], finished=True, outputs=[SimpleNamespace(**said)])
            )
        return found


class LLM:
    made: list[Any] = []
    policy: Policy

    def __init__(self, **settings: Any) -> None:
        self.settings, self.llm_engine, self.asleep = settings, Inner(self.policy), set()
        self.label = "default"
        self.staged: Any = None
        self.calls: list[str] = []
        LLM.made.append(self)
        if settings["model"] == "broken":
            raise RuntimeError("Engine core initialization failed")

    def get_weight_version(self) -> str:
        return self.label

    def reset_prefix_cache(self) -> bool:
        return True

    def sleep(self, level: int = 1) -> None:
        assert level == 2
        self.asleep = {"weights", "kv_cache"}
        self.calls.append("sleep")

    def wake_up(self, tags: list[str]) -> bool:
        self.asleep -= set(tags)
        self.calls.append(f"wake {tags[0]}")
        return not self.asleep

    def init_weight_transfer_engine(self, request: Any) -> None:
        assert request == {"init_info": {"packed": False}}

    def shutdown_weight_transfer_engine(self) -> None:
        self.calls.append("shutdown")

    def start_weight_update(self) -> None:
        assert "weights" not in self.asleep and self.staged is None
        self.staged = {}

    def update_weights(self, request: Any) -> None:
        info = request["update_info"]
        handles = pickle.loads(base64.b64decode(info["ipc_handles_pickled"]))
        self.staged = {n: SHARED[h["GPU-0"][0]] for n, h in zip(info["names"], handles, strict=True)}

    def finish_weight_update(self, weight_version: str) -> None:
        model = tiny(1).model
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(self.staged[name])
        self.llm_engine.local.update(model, 0)
        self.label, self.staged = weight_version, None
        self.calls.append("weights")


@pytest.fixture(scope="module")
def policy():
    return tiny(1)


@pytest.fixture
def library(policy, monkeypatch):
    install(monkeypatch)
    config: Any = ModuleType("vllm.config")
    config.WeightTransferConfig = lambda backend: backend
    monkeypatch.setitem(sys.modules, "vllm.config", config)
    vllm: Any = sys.modules["vllm"]
    vllm.LLM, vllm.SamplingParams, LLM.policy = LLM, SimpleNamespace, policy
    monkeypatch.setattr(LLM, "made", [])
    monkeypatch.setattr("longstride.engines.vllm_engine.folder_of", lambda name: None)
    monkeypatch.setattr("longstride.engines.preflight.PROBE_TOKENS", 8)
    monkeypatch.setattr(Policy, "device", "cuda:0")
    monkeypatch.setenv("VLLM_ALLOW_INSECURE_SERIALIZATION", "0")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    return LLM.made


def test_it_is_the_engine_in_this_process_and_takes_new_weights_after_a_rest(library, policy):
    config = build(EngineConfig, {"type": "vllm", "sleep": True, "memory": 0.3})
    engine: Any = config.make(policy, 3, [Sampling(temperature=0.6)])
    (llm,) = library
    assert llm.settings["gpu_memory_utilization"] == 0.3 and llm.settings["weight_transfer_config"] == "ipc"
    assert llm.settings["enable_prefix_caching"] and llm.settings["logprobs_mode"] == "processed_logprobs"
    requests, new = batch(policy, 3, max_new=8), tiny(2)
    for model, version in ((policy.model, 3), (new.model, 4)):
        if version == 4:
            engine.rest()
            engine.update(model, version)
        local = LocalEngine(model, policy.chat.end_ids, policy.max_context, version=version).generate(requests)
        got = engine.generate(requests)
        assert [(c.ids, c.versions, c.finish) for c in got] == [(c.ids, c.versions, c.finish) for c in local]
    assert preflight(engine, new).max_gap < 1e-5
    assert llm.calls == ["weights", "sleep", "wake weights", "weights", "wake kv_cache"]
    engine.close()
    assert llm.calls[-1] == "shutdown"


def test_what_is_on_its_way_ends_under_the_old_weights_and_a_cancelled_request_never(library, policy):
    engine = VLLMEngine(VLLM(), policy, 7)
    tickets = [engine.submit(r) for r in batch(policy, 3, max_new=8)]
    engine.cancel(tickets[0])
    engine.update(tiny(2).model, 8)
    assert {(t, v) for t, c in engine.poll() for v in getattr(c, "versions", ())} == {(t, 7) for t in tickets[1:]}
    assert engine.generate([Request([5] * policy.max_context, 4, seed=0)])[0].finish == "context"


def test_a_vllm_that_dies_fails_its_requests_and_those_to_come(library, policy):
    engine = VLLMEngine(VLLM(), policy)
    engine.submit(batch(policy, 1)[0])
    library[0].llm_engine.dead = True
    for _ in range(2):
        ((_, said),) = engine.poll()
        assert isinstance(said, EngineFailure) and "EngineCore encountered an issue" in str(said)
        engine.submit(batch(policy, 1)[0])


@pytest.mark.parametrize("odd", [{"finish_reason": "abort"}, {"logprobs": None}, {"token_ids": [99_999]}])
def test_what_is_no_completion_is_a_failure(library, policy, odd):
    engine = VLLMEngine(VLLM(), policy)
    library[0].llm_engine.odd = odd
    with pytest.raises(EngineFailure, match="vLLM gave no completion"):
        engine.generate(batch(policy, 1, max_new=4))


def test_a_vllm_that_is_missing_or_does_not_start_or_would_sleep_as_it_samples_is_said(library, policy, monkeypatch):
    with pytest.raises(ConfigError, match="pool.staleness=0"):
        VLLM(sleep=True).make(policy, 0, [], shared=False)
    broken = Policy("broken", policy.model, policy.tokenizer, policy.chat, policy.max_context)
    with pytest.raises(EngineFailure, match="does not start .*Engine core initialization failed"):
        VLLMEngine(VLLM(), broken)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "vllm", None)
        with pytest.raises(MissingExtra, match=r"longstride\[vllm\]"):
            VLLMEngine(VLLM(), policy)
    assert sys.modules["vllm"].__version__ == VERSION

"""A library that keeps to the interface of vLLM 0.33, on top of the local engine."""

import base64
import copy
import os
import pickle
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from vllm_server import SHARED, install

from longstride.engines.base import Completion, Request, Sampling
from longstride.engines.local import LocalEngine
from longstride.models.load import Policy, load_policy


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
    """`policy` has the model that it loads, without its weights. `made` are those that there are."""

    made: list[Any] = []
    policy: Policy

    def __init__(self, **settings: Any) -> None:
        self.settings, self.environment = settings, dict(os.environ)
        self.llm_engine, self.asleep = Inner(copy.deepcopy(self.policy)), set()
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

    def collective_rpc(self, method: str, kwargs: dict[str, str]) -> None:
        assert method == "reload_weights" and "weights" not in self.asleep
        self.llm_engine.local.update(load_policy(kwargs["weights_path"]).model, 0)
        self.calls.append("weights of a folder")

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
        model = copy.deepcopy(self.policy.model)
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(self.staged[name])
        self.llm_engine.local.update(model, 0)
        self.label, self.staged = weight_version, None
        self.calls.append("weights")


def install_library(monkeypatch: Any, policy: Policy) -> None:
    """Makes it importable as vLLM, with weights that are handed over on the CPU."""
    install(monkeypatch)
    config: Any = ModuleType("vllm.config")
    config.WeightTransferConfig = lambda backend: backend
    monkeypatch.setitem(sys.modules, "vllm.config", config)
    vllm: Any = sys.modules["vllm"]
    vllm.LLM, vllm.SamplingParams, LLM.policy = LLM, SimpleNamespace, policy
    monkeypatch.setattr(LLM, "made", [])
    monkeypatch.setattr("longstride.engines.vllm_engine.folder_of", lambda name: None)
    monkeypatch.setattr("longstride.engines.preflight.PROBE_TOKENS", 8)
    monkeypatch.setenv("VLLM_ALLOW_INSECURE_SERIALIZATION", "0")

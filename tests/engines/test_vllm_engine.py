"""vLLM as a library, against one that keeps to the interface of vLLM 0.33 on top of the local engine."""

import os
import sys
from typing import Any

import pytest
from completions_server import batch, tiny
from vllm_library import LLM, install_library
from vllm_server import VERSION

from longstride.core.component import build
from longstride.core.errors import ConfigError, EngineFailure, MissingExtra
from longstride.engines.base import Request, Sampling
from longstride.engines.config import VLLM, EngineConfig
from longstride.engines.local import LocalEngine
from longstride.engines.preflight import preflight
from longstride.engines.vllm_engine import VLLMEngine
from longstride.models.load import Policy


@pytest.fixture(scope="module")
def policy():
    return tiny(1)


@pytest.fixture
def library(policy, monkeypatch):
    install_library(monkeypatch, policy)
    monkeypatch.setattr(Policy, "device", "cuda:0")
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


@pytest.mark.parametrize(("visible", "card"), [(None, "1"), ("4,6", "6")])
def test_each_of_several_processes_has_an_engine_of_its_own_on_its_own_card(
    library, policy, monkeypatch, visible, card
):
    told = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    before = dict(os.environ)
    monkeypatch.setattr(Policy, "device", "cuda:1")
    VLLM().make(policy, 0, [])
    seen = library[0].environment
    assert seen["CUDA_VISIBLE_DEVICES"] == card and not told.keys() & seen.keys()
    assert {k: os.environ.get(k) for k in before} == before


def test_cut_over_several_cards_it_reads_new_weights_from_a_folder_of_its_own(library, policy, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,4,6")
    monkeypatch.setattr(Policy, "device", "cuda:1")
    engine: Any = VLLM(cards=2, path=str(tmp_path / "memory"), sleep=True).make(policy, 3, [Sampling()])
    (llm,) = library
    assert llm.settings["tensor_parallel_size"] == 2 and llm.settings["weight_transfer_config"] is None
    assert llm.environment["CUDA_VISIBLE_DEVICES"] == "4,6"
    new, requests = tiny(2), batch(policy, 3, max_new=8)
    engine.rest()
    engine.update(new.model, 4)
    local = LocalEngine(new.model, policy.chat.end_ids, policy.max_context, version=4).generate(requests)
    assert [(c.ids, c.versions) for c in engine.generate(requests)] == [(c.ids, c.versions) for c in local]
    assert llm.calls == ["weights of a folder", "sleep", "wake weights", "weights of a folder", "wake kv_cache"]
    (folder,) = (tmp_path / "memory").iterdir()
    assert [version.name for version in folder.iterdir()] == ["version-4"]
    engine.close()
    assert not list((tmp_path / "memory").iterdir())


def test_cards_that_cannot_be_had_are_refused(library, policy, monkeypatch, tmp_path):
    with pytest.raises(ConfigError, match="cards: several read new weights from a folder; set path"):
        build(EngineConfig, {"type": "vllm", "cards": 2})
    cut = VLLM(cards=2, path=str(tmp_path))
    with monkeypatch.context() as one:
        one.setenv("CUDA_VISIBLE_DEVICES", "5")
        with pytest.raises(ConfigError, match="engine.cards is 2, and from cuda:0 on this process sees 1"):
            VLLMEngine(cut, policy)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="the processes of torchrun have a card each; train with --cluster ray"):
        VLLMEngine(cut, policy)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"engine\.path: no folder can be made below .*file"):
        VLLMEngine(VLLM(path=str(tmp_path / "file")), policy)


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

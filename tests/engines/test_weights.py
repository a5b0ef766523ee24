"""How new weights reach a server: against one that keeps to vLLM's interface (`vllm_server`), one that keeps to
SGLang's, and, where LONGSTRIDE_VLLM names one, a real vLLM."""

import os
import sys
from typing import Any

import pytest
import torch
from completions_server import Server, batch, call_of, response, tiny
from judge_server import Crowd
from starlette.responses import JSONResponse
from starlette.routing import Route
from vllm_server import VLLMServer, install

from longstride.core.component import build
from longstride.core.errors import ConfigError, EngineFailure, MissingExtra, ModelError
from longstride.engines import http
from longstride.engines.base import Request, Sampling
from longstride.engines.config import HTTP
from longstride.engines.http import HTTPEngine
from longstride.engines.local import LocalEngine
from longstride.engines.preflight import preflight
from longstride.engines.weights import IPC, NCCL, Adapters, Disk, Folder, Push, Weights, within
from longstride.models.adapters import adapt, merged
from longstride.models.load import Policy, load_policy
from longstride.models.lora import LoRA


class SGLangServer(Server):
    """SGLang with `--enable-memory-saver`."""

    def routes(self) -> list[Route]:
        steps = ("update_weights_from_disk", "release_memory_occupation", "resume_memory_occupation")
        return [super().routes()[0], *[Route(f"/{name}", self.step, methods=["POST"]) for name in steps]]

    def reset(self) -> None:
        self.released: set[str] = set()
        super().reset()

    async def step(self, message: Any) -> Any:
        self.calls.append(call_of(message))
        body = await message.json()
        if message.url.path == "/update_weights_from_disk":
            if "weights" in self.released or self.always:
                return JSONResponse({"success": False, "message": "Failed to load"}, 200 if self.always else 400)
            self.engine.update(load_policy(body["model_path"]).model, 0)
            return JSONResponse({"success": True, "message": "Succeeded", "num_paused_requests": 0})
        tags = set(body["tags"])
        self.released = self.released | tags if "release" in message.url.path else self.released - tags
        self.paused = bool(self.released)
        return JSONResponse(None)


@pytest.fixture(scope="module")
def policy():
    return tiny(1)


@pytest.fixture(scope="module")
def servers(policy):
    made = {kind.__name__: kind(policy) for kind in (VLLMServer, SGLangServer)}
    yield made
    for server in made.values():
        server.stop()


@pytest.fixture
def server(servers, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setattr("longstride.engines.preflight.PROBE_TOKENS", 16)
    install(monkeypatch)
    server = servers["VLLMServer"]
    server.reset()
    server.backend, server.version = "nccl", "0.33.0"
    yield server
    server.stuck.set()


@pytest.fixture
def sglang(servers, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    servers["SGLangServer"].reset()
    return servers["SGLangServer"]


def engine_of(server: Server, weights: Weights, **settings: Any) -> HTTPEngine:
    config = build(HTTP, {"url": f"{server.root}/v1", "model": "m", "timeout": 10.0, "retries": 0} | settings)
    return HTTPEngine(config.replace(weights=weights), server.policy, version=7)


def sampled_from(engine: HTTPEngine, policy: Policy, model: Any, version: int) -> None:
    """Asserts that an engine's tokens are those of a model, under this version."""
    requests = batch(policy, 2, max_new=8)
    local = LocalEngine(model, policy.chat.end_ids, policy.max_context, version=version).generate(requests)
    assert [(c.ids, c.versions) for c in engine.generate(requests)] == [(c.ids, c.versions) for c in local]


def on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Policy, "device", "cuda:0")


def pushed(server: Server) -> list[str]:
    """The calls of pushes: what was asked between them for a sampled token's label is left out."""
    after = [*server.calls[1:], ""]
    return [c for c, n in zip(server.calls, after, strict=True) if c != "/weight_info" or n == "/start_weight_update"]


UPDATE = ["/start_weight_update", "/update_weights", "/finish_weight_update"]


class TestTransfer:
    @pytest.mark.parametrize("weights", [NCCL(), IPC()])
    def test_tensors_arrive_between_pause_and_resume(self, server, policy, monkeypatch, weights):
        on_cuda(monkeypatch)
        server.backend = weights.type_name()
        engine = engine_of(server, weights)
        for version, seed in ((1, 2), (2, 3)):
            new = tiny(seed)  # another module each time, as merged weights are
            engine.update(new.model, version)
            sampled_from(engine, policy, new.model, version)
        meet = ["/get_world_size"] if isinstance(weights, NCCL) else []
        first = ["/pause?mode=wait", "/version", *meet, "/init_weight_transfer_engine", *UPDATE]
        again = ["/pause?mode=wait", "/weight_info", *UPDATE]
        after = ["/reset_prefix_cache", "/resume"]
        assert pushed(server) == [*first, *after, *again, *after]
        engine.close()
        assert server.group is None

    @pytest.mark.parametrize("weights", [NCCL(sleep=True), IPC(sleep=True)])
    def test_a_server_at_rest_forgets_its_weights_and_wakes_with_new_ones(self, server, policy, monkeypatch, weights):
        on_cuda(monkeypatch)
        server.backend = weights.type_name()
        engine, new = engine_of(server, weights), tiny(2)
        engine.update(policy.model, 1)
        engine.rest()
        engine.rest()
        assert server.level == 2 and server.asleep == {"weights", "kv_cache"}
        server.calls.clear()
        engine.update(new.model, 2)
        wake = ["/is_sleeping", "/wake_up?tags=weights"]
        assert server.calls == [*wake, "/weight_info", *UPDATE, "/wake_up?tags=kv_cache", "/reset_prefix_cache"]
        sampled_from(engine, policy, new.model, 2)

    def test_what_is_on_its_way_ends_under_the_old_weights(self, server, policy, monkeypatch):
        engine, requests, known = engine_of(server, NCCL()), batch(policy, 3), http.wait
        server.crowd = Crowd(4)  # one more than come: nothing is answered before the update waits for it

        def waiting(*asked):
            server.crowd.free.set()
            return known(*asked)

        monkeypatch.setattr(http, "wait", waiting)
        tickets = [engine.submit(r) for r in requests]
        engine.update(tiny(2).model, 8)
        told = engine.poll()
        assert [t for t, _ in told] == tickets and {v for _, c in told for v in getattr(c, "versions", ())} == {7}

    def test_weights_of_another_run_are_found_out_by_their_version(self, server, policy):
        engine = engine_of(server, NCCL())
        engine.update(policy.model, 1)
        mine = server.label
        assert mine.endswith("-1")
        server.label = "theirs"
        with pytest.raises(EngineFailure, match=f"'m' at .*'theirs' where this run gave it '{mine}'"):
            engine.update(policy.model, 2)
        assert engine.version == 1

    def test_a_server_of_another_version_is_refused(self, server, policy):
        server.version = "0.31.0"
        with pytest.raises(ConfigError, match="the server is vLLM 0.31.0, and here is vLLM 0.33.0"):
            engine_of(server, NCCL()).update(policy.model, 1)

    def test_a_server_that_refuses_them_stays_paused_and_keeps_the_version(self, server, policy, monkeypatch):
        on_cuda(monkeypatch)
        server.backend, server.insecure = "ipc", False
        engine = engine_of(server, IPC())
        with pytest.raises(EngineFailure, match="Refusing to deserialize"):
            engine.update(policy.model, 1)
        assert engine.version == 7 and server.paused
        with pytest.raises(EngineFailure, match="503"):
            engine.generate(batch(policy, 1))
        server.insecure = True

    def test_a_server_that_goes_silent_in_the_middle_is_a_failure_in_time(self, server, policy):
        server.silent = {"update_weights"}
        with pytest.raises(EngineFailure, match="did not arrive within 0.5 s|nothing whole came within 0.5 s"):
            engine_of(server, NCCL(), timeout=0.5).update(policy.model, 1)
        server.stuck.set()

    def test_without_the_library_it_says_what_to_install(self, server, policy, monkeypatch):
        monkeypatch.setitem(sys.modules, "vllm", None)
        with pytest.raises(MissingExtra, match=r"longstride\[vllm\]"):
            engine_of(server, NCCL()).update(policy.model, 1)

    def test_handles_of_a_cpu_are_refused(self, server, policy):
        with pytest.raises(ConfigError, match="the policy is on cpu; set device=cuda"):
            engine_of(server, IPC()).update(policy.model, 1)


class TestFolders:
    def test_vllm_reads_the_newest_folder(self, server, policy, tmp_path):
        engine, new = engine_of(server, Folder(path=str(tmp_path))), tiny(2)
        for version in (1, 2):
            engine.update(new.model, version)
        assert [p.name for p in tmp_path.iterdir()] == ["version-2"]
        assert server.loaded[-1] == {"method": "reload_weights", "kwargs": {"weights_path": f"{tmp_path}/version-2"}}
        push = ["/pause?mode=wait", "/collective_rpc", "/update_weight_version", "/reset_prefix_cache", "/resume"]
        assert server.calls == push * 2
        sampled_from(engine, policy, new.model, 2)
        assert preflight(engine, new).max_gap < 1e-5
        engine.close()
        assert not any(tmp_path.iterdir())

    def test_what_a_killed_process_left_goes_with_the_first_that_a_server_takes(self, server, tmp_path):
        for name in ("version-1", "version-2", "version-9", "version-mine", "other"):
            (tmp_path / name).mkdir()
        new = tiny(2)
        engine_of(server, Folder(path=str(tmp_path))).update(new.model, 3)
        assert {p.name for p in tmp_path.iterdir()} == {"version-3", "version-9", "version-mine", "other"}

    def test_a_server_that_keeps_its_old_cache_keeps_the_version(self, server, policy, tmp_path, monkeypatch):
        monkeypatch.setattr(server, "under_way", 1)  # another client's
        engine = engine_of(server, Folder(path=str(tmp_path)))
        with pytest.raises(EngineFailure, match="did not drop its cache"):
            engine.update(policy.model, 8)
        assert engine.version == 7

    def test_a_server_without_the_interface_is_told_from_one_that_fails(self, sglang, policy, tmp_path):
        with pytest.raises(EngineFailure, match="status 404.*VLLM_SERVER_DEV_MODE=1"):
            engine_of(sglang, Folder(path=str(tmp_path))).update(policy.model, 8)

    def test_a_folder_that_cannot_be_written_is_named(self, server, policy, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(ModelError, match="cannot be saved"):
            engine_of(server, Folder(path=str(tmp_path / "file"))).update(policy.model, 8)
        assert server.calls == []

    def test_sglang_reads_a_folder_and_gives_its_memory_back(self, sglang, policy, tmp_path):
        engine, new = engine_of(sglang, Disk(path=str(tmp_path), sleep=True)), tiny(2)
        engine.update(policy.model, 1)
        engine.rest()
        assert sglang.released == {"weights", "kv_cache"}
        engine.update(new.model, 2)
        assert sglang.calls == [
            "/update_weights_from_disk", "/release_memory_occupation", "/resume_memory_occupation",
            "/update_weights_from_disk", "/resume_memory_occupation",
        ]  # fmt: skip
        assert [p.name for p in tmp_path.iterdir()] == ["version-2"]
        sampled_from(engine, policy, new.model, 2)

    def test_sglang_says_in_its_answer_that_it_took_none(self, sglang, policy, tmp_path):
        sglang.always = response("")
        with pytest.raises(EngineFailure, match="did not take the weights of .*Failed to load"):
            engine_of(sglang, Disk(path=str(tmp_path))).update(policy.model, 1)


class TestAdapters:
    def test_adapters_are_pushed_alone_under_a_name_of_their_version(self, server, policy, tmp_path):
        pytest.importorskip("peft")
        engine, learner = engine_of(server, Adapters(path=str(tmp_path), sleep=True)), tiny(1).model
        assert engine.adapters
        engine.update(learner, 0)
        sampled_from(engine, policy, policy.model, 0)
        adapt(learner, LoRA(rank=2))
        for version in (1, 2):
            engine.rest()
            assert server.level == 1
            with torch.no_grad():
                for p in (p for p in learner.parameters() if p.requires_grad):
                    p.add_(0.3 * torch.ones_like(p))
            engine.update(learner, version)
            sampled_from(engine, policy, merged(learner), version)
        assert len(server.adapters) == 1 and [p.name for p in tmp_path.iterdir()] == ["version-2"]
        assert sum(p.stat().st_size for p in (tmp_path / "version-2").iterdir()) < 50_000

    def test_a_learner_without_adapters_is_refused_before_a_rollout(self, server, policy, tmp_path):
        engine = engine_of(server, Adapters(path=str(tmp_path)))
        engine.update(policy.model, 0)
        with pytest.raises(ConfigError, match="learner.lora"):
            engine.update(policy.model, 0)


class TestSettings:
    def test_without_a_way_for_weights_it_says_which_there_are(self, server, policy):
        config = HTTP(url=f"{server.root}/v1", model="m")
        with pytest.raises(ConfigError, match="engine.weights.type: ipc .*nccl.*adapters.*folder.*disk"):
            HTTPEngine(config, policy).update(policy.model, 8)

    def test_a_server_cannot_rest_while_it_samples(self, server, policy):
        config = HTTP(url=f"{server.root}/v1", model="m", weights=NCCL(sleep=True))
        with pytest.raises(ConfigError, match="pool.staleness=0"):
            config.make(policy, 0, [Sampling()], shared=False)

    def test_another_tokenizer_is_refused_by_name(self, server, policy, monkeypatch):
        monkeypatch.setattr(server, "tokenize", lambda body: {"tokens": [5, 6]})
        server._server.config.app.routes[:] = server.routes()
        with pytest.raises(ConfigError, match="another tokenizer than 'tiny'.* as 2 ids"):
            HTTP(url=f"{server.root}/v1", model="m").make(policy, 0, [Sampling()])
        monkeypatch.undo()
        server._server.config.app.routes[:] = server.routes()

    def test_each_way_comes_back_from_its_data(self):
        for weights in (NCCL(port=4000), IPC(sleep=True), Adapters(path="/a"), Folder(path="/b"), Disk(path="/c")):
            config = HTTP(url="http://h/v1", model="m", weights=weights)
            assert build(HTTP, config.as_data()) == config


def test_work_that_never_ends_is_left_behind_and_errors_have_their_names():
    assert within(5, lambda: 3) == 3
    with pytest.raises(EngineFailure, match="ValueError: no"):
        within(5, lambda: (_ for _ in ()).throw(ValueError("no")))


REAL = os.environ.get("LONGSTRIDE_VLLM", "")


@pytest.mark.skipif(not REAL, reason="LONGSTRIDE_VLLM=URL of a vLLM with weight transfer says what to test against")
@pytest.mark.parametrize("sleep", [False, True])
def test_a_real_vllm_takes_weights_and_gives_them_back(sleep):
    """Serve a model of a few hundred million parameters under its own name, as `docs/guides/gpu_cluster.md` says, and
    set LONGSTRIDE_VLLM=http://127.0.0.1:8000/v1, LONGSTRIDE_MODEL to its name, LONGSTRIDE_WEIGHTS to ipc or nccl."""
    model = os.environ["LONGSTRIDE_MODEL"]
    policy = load_policy(model, device="cuda", dtype="bfloat16")
    weights = {"ipc": IPC, "nccl": NCCL}[os.environ.get("LONGSTRIDE_WEIGHTS", "ipc")](sleep=sleep)
    engine: Any = HTTP(url=REAL, model=model, weights=weights).make(policy, 0, [Sampling()])
    try:
        with torch.no_grad():
            for p in policy.model.parameters():
                p.mul_(0.98)
        with pytest.raises(ConfigError, match="preflight"):
            preflight(engine, policy)
        engine.rest()
        engine.update(policy.model, 1)
        preflight(engine, policy)
        request = Request(policy.chat.head("Count.") + policy.chat.observation("1", first=True), 8, seed=0)
        assert engine.generate([request])[0].versions[0] == 1
    finally:
        engine.close()


def test_every_way_has_a_push_of_its_own(server, policy, monkeypatch):
    on_cuda(monkeypatch)
    engine = engine_of(server, NCCL())
    for weights in (NCCL(), IPC(), Adapters(path="/a"), Folder(path="/b"), Disk(path="/c")):
        assert isinstance(weights.push(engine, policy), Push)

"""Both sides of vLLM's weight transfer without a GPU, after the interface of vLLM 0.33: a server that keeps weights and
refuses what comes out of order, and the part of the library that a trainer uses. Tensors go by gloo where vLLM takes
NCCL, and by a table where it takes CUDA's handles."""

import asyncio
import base64
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from types import ModuleType
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from completions_server import Server, call_of
from safetensors.torch import load_file
from starlette.requests import Request as Message
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from longstride.engines.local import LocalEngine
from longstride.models.load import Policy

VERSION = "0.33.0"
SHARED: dict[str, torch.Tensor] = {}
"""What handles lead to."""
distributed: Any = dist
PATIENCE = timedelta(seconds=20)


def group(port: int, rank: int, world: int) -> Any:
    store = distributed.TCPStore("127.0.0.1", port, world, is_master=rank == 0, timeout=PATIENCE)
    return distributed.ProcessGroupGloo(store, rank, world, PATIENCE)


class VLLMServer(Server):
    """vLLM with `--weight-transfer-config`, `--enable-sleep-mode` and `--enable-lora`, in development mode. It samples
    from a copy of its policy's weights, which begin as zeros where `dummy`."""

    def __init__(self, policy: Policy, backend: str = "nccl") -> None:
        self.backend, self.version, self.insecure = backend, VERSION, True
        super().__init__(policy)

    def routes(self) -> list[Route]:
        def post(name: str, work: Any) -> Route:
            return Route(f"/{name}", self._handled(work), methods=["POST"])

        def get(name: str, read: Any) -> Route:
            return Route(f"/{name}", self._handled(lambda _: read()), methods=["GET"])

        return [
            *[r for r in super().routes() if r.path not in ("/pause", "/resume", "/reset_prefix_cache", "/tokenize")],
            get("version", lambda: {"version": self.version}),
            get("get_world_size", lambda: {"world_size": 1}),
            get("is_sleeping", lambda: {"is_sleeping": bool(self.asleep)}),
            get("weight_info", lambda: {"weight_version": self.label}), get("health", dict),
            post("update_weight_version", self.name_weights),
            post("pause", self.pause_), post("resume", self.resume), post("reset_prefix_cache", self.reset_cache),
            post("sleep", self.sleep), post("wake_up", self.wake_up), post("tokenize", self.tokenize),
            post("init_weight_transfer_engine", self.init_), post("start_weight_update", self.start),
            post("update_weights", self.update), post("finish_weight_update", self.finish),
            post("shutdown_weight_transfer_engine", self.shutdown),
            post("v1/load_lora_adapter", self.load_adapter), post("v1/unload_lora_adapter", self.unload_adapter),
        ]  # fmt: skip

    def reset(self) -> None:
        self.asleep: set[str] = set()
        self.level, self.label, self.meta = 0, "default", None
        self.group: Any = None
        self.staged: dict[str, torch.Tensor] | None = None
        self.adapters: dict[str, LocalEngine] = {}
        self.silent: set[str] = set()
        """Calls that are never answered."""
        self.stuck = threading.Event()
        super().reset()

    def _handled(self, work: Any) -> Any:
        async def handle(message: Message) -> Any:
            self.calls.append(call_of(message))
            data = await message.body()
            if message.url.path.strip("/") in self.silent:
                await asyncio.to_thread(self.stuck.wait, 20)
            try:
                body = {"query": message.query_params, **(await message.json() if data else {})}
                found = await asyncio.to_thread(work, body)
            except KeyError as e:
                return JSONResponse({"error": f"Field required: {e}"}, 400)
            except RuntimeError as e:
                return JSONResponse({"error": str(e)}, 500)
            return found if isinstance(found, Response) else JSONResponse(found)

        return handle

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        if body["model"] in self.adapters:
            engine, self.engine = self.engine, self.adapters[body["model"]]
            try:
                return super().completion(body)
            finally:
                self.engine = engine
        assert body["model"] == "m", "vLLM answers 404"
        return super().completion(body)

    # what a server in development mode has

    def pause_(self, body: dict[str, Any]) -> Any:
        assert body["query"]["mode"] == "wait" and not self.asleep
        self.paused = True
        return {"status": "paused"}

    def resume(self, _: Any) -> Any:
        self.paused = False
        return {"status": "resumed"}

    def reset_cache(self, _: Any) -> Any:
        return {"success": self.under_way == 0}

    def sleep(self, body: dict[str, Any]) -> Any:
        self.level, self.asleep, self.paused = int(body["query"]["level"]), {"weights", "kv_cache"}, True
        if self.level == 2:
            self._load({name: torch.zeros_like(p) for name, p in self.policy.model.named_parameters()})
        return {"status": "sleeping", "level": self.level}

    def wake_up(self, body: dict[str, Any]) -> Any:
        tags = body["query"].getlist("tags")
        self.asleep -= set(tags or self.asleep)
        self.paused = bool(self.asleep)
        return {"status": "sleeping" if self.asleep else "awake", "tags": tags or None}

    def tokenize(self, body: dict[str, Any]) -> Any:
        ids = self.policy.tokenizer(body["prompt"], add_special_tokens=body["add_special_tokens"])["input_ids"]
        return {"count": len(ids), "max_model_len": self.policy.max_context, "tokens": ids}

    def init_(self, body: dict[str, Any]) -> Any:
        info, self.meta = body["init_info"], None
        if self.backend == "nccl":
            self.group = group(info["master_port"], info["rank_offset"], info["world_size"])
        else:
            self.group = info["packed"]
        return {"message": "Weight transfer initialized"}

    def start(self, _: Any) -> Any:
        if self.group is None:
            raise RuntimeError("Weight transfer engine is not initialized.")
        if self.staged is not None:
            raise RuntimeError("A weight update session is already active. Call finish_weight_update first.")
        if not self.paused or "weights" in self.asleep:
            raise RuntimeError("weights were changed under requests, or where there is no memory for them")
        self.staged = {}
        return {"message": "Weight update started"}

    def update(self, body: dict[str, Any]) -> Any:
        info = body["update_info"]
        if self.staged is None:
            raise RuntimeError("start_weight_update must be called before update_weights.")
        if self.backend == "nccl":
            self.meta = info if info["names"] else self.meta
            assert self.meta is not None
            for name, dtype, shape in zip(*(self.meta[k] for k in ("names", "dtype_names", "shapes")), strict=True):
                self.staged[name] = torch.empty(shape, dtype=getattr(torch, dtype))
                self.group.broadcast([self.staged[name]], dist.BroadcastOptions()).wait()
        else:
            if not self.insecure:
                raise RuntimeError("Refusing to deserialize `ipc_handles_pickled`")
            handles = pickle.loads(base64.b64decode(info["ipc_handles_pickled"]))
            for name, handle in zip(info["names"], handles, strict=True):
                self.staged[name] = SHARED[handle["GPU-0"][0]].clone()
        return {"message": "Weights updated"}

    def finish(self, body: dict[str, Any]) -> Any:
        if self.staged is None:
            raise RuntimeError("finish_weight_update was called without an active session.")
        self._load(self.staged)
        self.staged, self.label, self.level = None, body.get("weight_version") or self.label, 0
        return {"message": "Weight update finished"}

    def name_weights(self, body: dict[str, Any]) -> Any:
        self.label = body["new_version"]
        return {"success": True}

    def shutdown(self, _: Any) -> Any:
        self.group = None
        return {"message": "Weight transfer shut down"}

    def load_adapter(self, body: dict[str, Any]) -> Any:
        import copy

        from peft import PeftModel

        assert load_file(f"{body['lora_path']}/adapter_model.safetensors")
        adapted: Any = PeftModel.from_pretrained(copy.deepcopy(self.policy.model), body["lora_path"])
        plain = adapted.merge_and_unload()
        self.adapters[body["lora_name"]] = LocalEngine(plain, self.policy.chat.end_ids, self.policy.max_context)
        return Response(f"Success: LoRA adapter '{body['lora_name']}' added successfully.")

    def unload_adapter(self, body: dict[str, Any]) -> Any:
        if self.adapters.pop(body["lora_name"], None) is None:
            return JSONResponse({"error": {"message": "The lora adapter cannot be found."}}, 404)
        return Response("Success")

    def _load(self, weights: dict[str, torch.Tensor]) -> None:
        import copy

        model = copy.deepcopy(self.policy.model)
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(weights[name])
        self.engine.update(model, 0)


# the trainer's side of the library


@dataclass
class NCCLTrainerInitInfo:
    backend: ClassVar[str] = "nccl"
    master_address: str
    master_port: int
    world_size: int
    packed: bool = True
    rank: int = field(kw_only=True)


@dataclass
class IPCTrainerInitInfo:
    backend: ClassVar[str] = "ipc"
    packed: bool = False
    rank: int = field(kw_only=True)


@dataclass
class UpdateInfo:
    names: list[str] = field(default_factory=list)
    dtype_names: list[str] = field(default_factory=list)
    shapes: list[list[int]] = field(default_factory=list)


@dataclass
class IPCUpdateInfo(UpdateInfo):
    ipc_handles: Any = None
    ipc_handles_pickled: str | None = None
    tensor_sizes: list[int] | None = None


class ModuleSource:
    """Metadata is read once, weights at each transfer."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.metadata = [(n, str(p.dtype).split(".")[-1], list(p.shape)) for n, p in module.named_parameters()]

    def iter_full(self) -> Any:
        yield from self._module.named_parameters()


class Trainer:
    def __init__(self, info: Any, client: Any, source: ModuleSource) -> None:
        self.client, self.source, self.sent, self.group = client, source, False, None
        if info.backend == "nccl":
            payload = {"master_address": info.master_address, "master_port": info.master_port, "rank_offset": 1}
            payload |= {"world_size": info.world_size, "packed": info.packed}
            with ThreadPoolExecutor(1) as pool:
                theirs = pool.submit(client.init_weight_transfer_engine, payload)
                self.group = group(info.master_port, 0, info.world_size)
                theirs.result()
        else:
            client.init_weight_transfer_engine({"packed": info.packed})

    def send_weights(self) -> None:
        names, kinds, shapes = (list(part) for part in zip(*self.source.metadata, strict=True))
        self.client.start_weight_update()
        if self.group is None:
            handles = []
            for name, p in self.source.iter_full():
                SHARED[name] = p.detach()
                handles.append({"GPU-0": (name,)})
            self.client.update_weights(asdict(IPCUpdateInfo(names, kinds, shapes, handles)))
        else:
            info = UpdateInfo() if self.sent else UpdateInfo(names, kinds, shapes)
            pool = ThreadPoolExecutor(1)
            theirs = pool.submit(self.client.update_weights, asdict(info))
            for _, p in self.source.iter_full():
                self.group.broadcast([p.detach().contiguous()], dist.BroadcastOptions()).wait()
            theirs.result()
            pool.shutdown(wait=False)
        self.client.finish_weight_update()
        self.sent = True

    def shutdown(self) -> None:
        self.group = None


class WeightTransferTrainerFactory:
    @staticmethod
    def trainer_init(init_info: Any, *, client: Any, source: ModuleSource) -> Trainer:
        return Trainer(init_info, client, source)


def install(monkeypatch: Any) -> None:
    """Makes what is above importable as vLLM."""
    parts = {
        "vllm": {"__version__": VERSION},
        "vllm.distributed": {},
        "vllm.distributed.weight_transfer": {
            "ModuleSource": ModuleSource, "WeightTransferTrainerFactory": WeightTransferTrainerFactory
        },
        "vllm.distributed.weight_transfer.nccl_engine": {"NCCLTrainerInitInfo": NCCLTrainerInitInfo},
        "vllm.distributed.weight_transfer.ipc_engine": {"IPCTrainerInitInfo": IPCTrainerInitInfo},
    }  # fmt: skip
    for name, members in parts.items():
        module = ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)
        above, _, last = name.rpartition(".")
        if above:
            setattr(sys.modules[above], last, module)

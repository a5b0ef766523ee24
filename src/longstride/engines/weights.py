"""How a server gets new weights after an update: the calls of its own documented interface, in their order.

What always holds: nothing is sampled while weights arrive, and nothing cached under the old ones is read after that; a
call that the server refuses, or that takes longer than `engine.timeout`, is an `EngineFailure`, after which the server
stays paused. No torch before a push is made.

Read in the source of vLLM 0.33 (`vllm/entrypoints/rl/online`, `serve/dev/sleep`, `serve/lora`,
`vllm/distributed/weight_transfer`) and in SGLang's page on RL systems. Tested against a server that keeps to these; not
yet run on a GPU.
"""

import gc
import pickle
import shutil
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from queue import Empty, SimpleQueue
from secrets import token_hex
from socket import create_server
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol

from pydantic import Field

from longstride.core.component import Component
from longstride.core.errors import ConfigError, EngineFailure, MissingExtra, short

if TYPE_CHECKING:
    from torch import nn

    from longstride.models.load import Policy

DEV_MODE = "expected is vLLM 0.33 or newer, started with VLLM_SERVER_DEV_MODE=1"


class Connection(Protocol):
    """What a push asks of the connection to a server."""

    model: str
    """Its name there."""
    timeout: float
    """Seconds that one call may take."""

    def call(
        self, path: str, body: dict[str, Any] | None = None, method: Literal["GET", "POST"] = "POST", advice: str = ""
    ) -> dict[str, Any]:
        """The JSON object that answers a call of the server's interface outside of `/v1`; empty where there is none.

        Raises:
            EngineFailure: no answer, or one of another status than 200; `advice` says what is expected.
        """
        ...


class Weights(Component):
    """Family: how a server gets new weights."""

    sleep: bool = False
    """Whether the server gives the memory of its weights and its cache back while the learner trains: both then share
    one card (`vllm serve --enable-sleep-mode`, SGLang's `--enable-memory-saver`)."""

    adapters: ClassVar[bool] = False
    """Whether adapters are pushed, apart from the weights that they adapt."""
    one_by_one: ClassVar[bool] = False
    """Whether of several servers one takes them after the other: the learner's card sends them."""

    @abstractmethod
    def push(self, server: Connection, policy: "Policy") -> "Push":
        """What pushes the weights of this policy to this server."""


class Push(ABC):
    """One server's connection to the weights of one learner."""

    def __init__(self, settings: Weights, server: Connection, policy: "Policy") -> None:
        self.settings, self.server, self.policy = settings, server, policy
        self.served = server.model
        """The name under which the newest weights are sampled from."""
        self.label = ""
        """What the server was told that its weights are, and says when it is asked: every version of every run has a
        label of its own. Empty where it does not say."""
        self._resting = False

    def prepare(self, model: "nn.Module", version: int) -> None:  # noqa: B027 (most need nothing)
        """What comes before the first server waits, once for all servers of a run: weights are written to where these
        read them.

        Raises:
            ModelError: they cannot be saved.
        """

    def __call__(self, model: "nn.Module", version: int) -> None:
        """Gives the server the weights of a module, as number `version`, which are prepared. No request may be under
        way.

        Raises:
            EngineFailure: it did not take them.
            ConfigError: it cannot take them.
        """
        if self._resting:
            _free_memory()
        self._push(model, version)
        self._resting = False

    def rest(self) -> None:
        """Has the server give its memory back until the next push, where that is set."""
        if self.settings.sleep and not self._resting:
            self._sleep()
            self._resting = True

    @abstractmethod
    def _push(self, model: "nn.Module", version: int) -> None: ...

    @abstractmethod
    def _sleep(self) -> None: ...

    def close(self) -> None:  # noqa: B027 (most hold nothing)
        """Ends the connection."""


class _VLLM(Push):
    """The order of calls that is common to vLLM's ways."""

    level = 2
    """Of sleep: 2 forgets the weights, since new ones come; 1 keeps them in the machine's memory."""

    def __init__(self, settings: Weights, server: Connection, policy: "Policy") -> None:
        super().__init__(settings, server, policy)
        self._run = token_hex(4)

    def _label_of(self, version: int) -> str:
        return f"longstride-{self._run}-{version}"

    def _push(self, model: "nn.Module", version: int) -> None:
        asleep = self._is_asleep()
        self._call("wake_up?tags=weights" if asleep else "pause?mode=wait")
        self.send(model, version)
        if asleep and self._call("wake_up?tags=kv_cache").get("status") != "awake":
            raise EngineFailure("vLLM did not wake up whole: is another client using it?")
        if self._call("reset_prefix_cache").get("success") is False:
            raise EngineFailure("vLLM did not drop its cache of the old weights: is another client sampling?")
        if not asleep:
            self._call("resume")

    def _is_asleep(self) -> bool:
        return self.settings.sleep and self._call("is_sleeping", method="GET").get("is_sleeping") is True

    def _sleep(self) -> None:
        self._call(f"sleep?level={self.level}&mode=wait")

    def _call(self, path: str, body: dict[str, Any] | None = None, method: Literal["GET", "POST"] = "POST") -> Any:
        return self.server.call(path, body, method, DEV_MODE)

    @abstractmethod
    def send(self, model: "nn.Module", version: int) -> None:
        """Transfers the weights."""


class _Folders:
    """A folder for each version, below one that this machine and the server both see."""

    def __init__(self, path: str) -> None:
        self.path = Path(path).absolute()
        self._newest: Path | None = None

    def new(self, version: int) -> Path:
        """For a version. Each has a name of its own: servers have been seen to read an old file again from their
        cache."""
        return self.path / f"version-{version}"

    def save(self, policy: "Policy", version: int) -> None:
        """Writes the weights of a version.

        Raises:
            ModelError: they cannot be saved.
        """
        from longstride.models.load import save_policy

        save_policy(policy, self.new(version))

    def took(self, folder: Path) -> None:
        """Removes the one before; at first all of versions before, which a process left that was killed."""
        if self._newest is None:
            old = [each for each in self.path.glob("version-*") if _version_of(each) < _version_of(folder)]
        else:
            old = [self._newest] if self._newest != folder else []
        for each in old:
            shutil.rmtree(each, ignore_errors=True)
        self._newest = folder

    def close(self) -> None:
        """Removes the newest."""
        if self._newest is not None:
            shutil.rmtree(self._newest, ignore_errors=True)


def _version_of(folder: Path) -> float:
    """The version of a folder that `_Folders` named; of any other inf, which no version is above."""
    number = folder.name.removeprefix("version-")
    return int(number) if number.isdecimal() else inf


class Folder(Weights):
    """vLLM reads them from a folder, by its worker's `reload_weights`. Works with every version and no further
    installation, at the speed of the disk."""

    path: Annotated[str, Field(min_length=1)]
    """That this machine and the server both see under this name."""

    def push(self, server: Connection, policy: "Policy") -> Push:
        return _FolderPush(self, server, policy)


class _FolderPush(_VLLM):
    def __init__(self, settings: Folder, server: Connection, policy: "Policy") -> None:
        super().__init__(settings, server, policy)
        self._folders = _Folders(settings.path)

    def prepare(self, model: "nn.Module", version: int) -> None:
        self._folders.save(replace(self.policy, model=model), version)

    def send(self, model: "nn.Module", version: int) -> None:
        folder = self._folders.new(version)
        self._call("collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}})
        self._folders.took(folder)
        self.label = ""
        with suppress(EngineFailure):  # a version that knows no labels
            self._call("update_weight_version", {"new_version": self._label_of(version)})
            self.label = self._label_of(version)

    def close(self) -> None:
        self._folders.close()


class Disk(Weights):
    """SGLang reads them from a folder, by `/update_weights_from_disk`."""

    path: Annotated[str, Field(min_length=1)]
    """That this machine and the server both see under this name."""

    def push(self, server: Connection, policy: "Policy") -> Push:
        return _DiskPush(self, server, policy)


class _DiskPush(Push):
    def __init__(self, settings: Disk, server: Connection, policy: "Policy") -> None:
        super().__init__(settings, server, policy)
        self._folders = _Folders(settings.path)

    def prepare(self, model: "nn.Module", version: int) -> None:
        self._folders.save(replace(self.policy, model=model), version)

    def _push(self, model: "nn.Module", version: int) -> None:
        folder = self._folders.new(version)
        if self._resting:
            self._call("resume_memory_occupation", {"tags": ["weights"]})
        # the caches of a server at rest are gone
        body = {"model_path": str(folder), "flush_cache": not self._resting, "weight_version": str(version)}
        said = self._call("update_weights_from_disk", body)
        if said.get("success") is not True:
            raise EngineFailure(f"SGLang did not take the weights of {folder}: {str(said.get('message'))[:300]}")
        if self._resting:
            self._call("resume_memory_occupation", {"tags": ["kv_cache"]})
        self._folders.took(folder)

    def _sleep(self) -> None:
        self._call("release_memory_occupation", {"tags": ["kv_cache", "weights"]})

    def close(self) -> None:
        self._folders.close()

    def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self.server.call(path, body, advice="expected is SGLang, started with --enable-memory-saver for sleep")


class Adapters(Weights):
    """vLLM reads adapters alone, of some megabytes, from a folder (`/v1/load_lora_adapter`), and samples from the
    weights that it was started with, adapted. Needs `learner.lora`, and `vllm serve --enable-lora` with a
    `--max-lora-rank` of at least its rank and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True."""

    path: Annotated[str, Field(min_length=1)]
    """That this machine and the server both see under this name."""

    adapters: ClassVar[bool] = True

    def push(self, server: Connection, policy: "Policy") -> Push:
        return _AdapterPush(self, server, policy)


class _AdapterPush(_VLLM):
    level = 1

    def __init__(self, settings: Adapters, server: Connection, policy: "Policy") -> None:
        super().__init__(settings, server, policy)
        self._folders, self._begun = _Folders(settings.path), False

    def _push(self, model: "nn.Module", version: int) -> None:
        if self._is_asleep():
            self._call("wake_up")
        self.send(model, version)

    def prepare(self, model: "nn.Module", version: int) -> None:
        from longstride.models.adapters import is_adapted, save_adapters

        if is_adapted(model):
            save_adapters(model, self._folders.new(version), self.policy.name)

    def send(self, model: "nn.Module", version: int) -> None:
        from longstride.models.adapters import is_adapted

        if not is_adapted(model):
            if self._begun:
                raise ConfigError("engine.weights: adapters are pushed, and there are none; set learner.lora={}")
            self._begun = True  # the learner has not put any in yet: the server's own weights are the policy's
            return
        advice = "expected is vLLM, started with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"
        folder, name = self._folders.new(version), f"{self.server.model}-{self._run}-{version}"
        # a name of its own for each version: what is cached is cached by name
        self.server.call("v1/load_lora_adapter", {"lora_name": name, "lora_path": str(folder)}, advice=advice)
        old, self.served = self.served, name
        if old != self.server.model:
            self.server.call("v1/unload_lora_adapter", {"lora_name": old}, advice=advice)
        self._folders.took(folder)

    def close(self) -> None:
        self._folders.close()


class NCCL(Weights):
    """vLLM on other cards takes them from the learner's card by NCCL, as its weight-transfer interface says. Start it
    with `--weight-transfer-config '{"backend": "nccl"}'`; `longstride[vllm]` is needed on this side too."""

    address: str = "127.0.0.1"
    """Of this machine, as the server sees it."""
    port: Annotated[int | None, Field(ge=1, le=65535)] = None
    """Where they meet; a free one if left out."""

    one_by_one: ClassVar[bool] = True

    def push(self, server: Connection, policy: "Policy") -> Push:
        return _TransferPush(self, server, policy)


class IPC(Weights):
    """vLLM on the same card reads them where they are, by handles of CUDA's interprocess communication. Start it with
    `--weight-transfer-config '{"backend": "ipc"}'` and VLLM_ALLOW_INSECURE_SERIALIZATION=1, since handles are pickled:
    whoever reaches its port can run code there. `longstride[vllm]` is needed on this side too."""

    one_by_one: ClassVar[bool] = True

    def push(self, server: Connection, policy: "Policy") -> Push:
        if not policy.device.startswith("cuda"):
            raise ConfigError(
                f"engine.weights: ipc shares the memory of a CUDA device, and the policy is on {policy.device}; set "
                "device=cuda, or engine.weights.type to nccl or folder"
            )
        return _TransferPush(self, server, policy)


class _Newest:
    """The newest weights under the one method by which vLLM's `ModuleSource` reads a module: an update may bring
    another module."""

    def __init__(self, model: "nn.Module") -> None:
        self.model = model

    def named_parameters(self) -> Any:
        return self.model.named_parameters()


class _TransferPush(_VLLM):
    """The trainer's side of vLLM's weight transfer. This object is the client by which vLLM's trainer engine reaches
    the server (`VLLMWeightSyncClient`: its four methods)."""

    def __init__(self, settings: NCCL | IPC, server: Connection, policy: "Policy") -> None:
        super().__init__(settings, server, policy)
        try:
            import vllm  # pyright: ignore[reportMissingImports]
            from vllm.distributed import weight_transfer  # pyright: ignore[reportMissingImports]
        except ImportError as e:
            raise MissingExtra(
                f"engine.weights: {settings.type_name()} needs vLLM's trainer side: pip install 'longstride[vllm]' (or "
                "set engine.weights.type=folder)"
            ) from e
        self._library, self._ours = weight_transfer, str(vllm.__version__)
        self._newest: _Newest | None = None
        self._trainer: Any = None

    def send(self, model: "nn.Module", version: int) -> None:
        if self._newest is None:
            self._newest = _Newest(model)
        self._newest.model = model
        if self._trainer is None:
            self._check_library()
            self._trainer = within(self.server.timeout, self._meet)
        else:
            found = self._call("weight_info", method="GET").get("weight_version")
            if found != self.label:
                raise EngineFailure(
                    f"the server has weights {found!r} where this run gave it {self.label!r}: another run uses it "
                    "too, or it was started again; tokens since the last update may be of other weights"
                )
        self.label = self._label_of(version)
        within(self.server.timeout, self._trainer.send_weights)

    def close(self) -> None:
        if self._trainer is not None:
            trainer, self._trainer = self._trainer, None
            with suppress(EngineFailure):
                within(min(self.server.timeout, 30), trainer.shutdown)  # it may wait for a side that is gone
                self._call("shutdown_weight_transfer_engine")

    def _check_library(self) -> None:
        theirs = str(self._call("version", method="GET").get("version"))
        if theirs != self._ours:
            raise ConfigError(
                f"engine.weights: the server is vLLM {theirs}, and here is vLLM {self._ours}; both sides of a transfer "
                "must be of one version"
            )

    def _meet(self) -> Any:
        library = self._library
        if isinstance(self.settings, NCCL):
            from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo  # pyright: ignore[reportMissingImports]

            others = self._call("get_world_size", method="GET").get("world_size")
            if not isinstance(others, int):
                raise EngineFailure(f"vLLM has a world size of {short(others)}; expected a number of processes")
            port = self.settings.port or _free_port()
            info: Any = NCCLTrainerInitInfo(
                master_address=self.settings.address, master_port=port, world_size=others + 1, rank=0
            )
        else:
            from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo  # pyright: ignore[reportMissingImports]

            info = IPCTrainerInitInfo(rank=0)
        source: Any = library.ModuleSource(self._newest)  # pyright: ignore[reportArgumentType]
        return library.WeightTransferTrainerFactory.trainer_init(info, client=self, source=source)

    # vLLM's VLLMWeightSyncClient

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._call("init_weight_transfer_engine", {"init_info": init_info})

    def shutdown_weight_transfer_engine(self) -> None:
        self._call("shutdown_weight_transfer_engine")

    def start_weight_update(self) -> None:
        self._call("start_weight_update")

    def update_weights(self, update_info: dict[str, Any] | list[dict[str, Any]]) -> None:
        several = isinstance(update_info, list)
        sent = [_json_of(info) for info in (update_info if several else [update_info])]
        self._call("update_weights", {"update_info": sent if several else sent[0]})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._call("finish_weight_update", {"weight_version": weight_version or self.label})


def _json_of(info: dict[str, Any]) -> dict[str, Any]:
    """An update's description as JSON can say it: CUDA's handles go as a pickle in base64, which vLLM reads under
    `ipc_handles_pickled`."""
    if info.get("ipc_handles") is None:
        return info
    rest = {name: value for name, value in info.items() if name not in ("ipc_handles", "ipc_handles_pickled")}
    return rest | {"ipc_handles_pickled": b64encode(pickle.dumps(info["ipc_handles"])).decode()}


def within(seconds: float, work: Callable[[], Any]) -> Any:
    """What `work` returns, which is done in a thread that is left behind after `seconds`: a collective whose other side
    is gone never comes back.

    Raises:
        EngineFailure: it failed in whatever way, or took longer.
    """
    import torch

    answers: SimpleQueue[Any] = SimpleQueue()
    device = torch.cuda.current_device() if torch.cuda.is_available() and torch.cuda.is_initialized() else None

    def run() -> None:
        try:
            if device is not None:
                torch.cuda.set_device(device)
            answers.put((work(), None))
        except BaseException as e:
            answers.put((None, e))

    Thread(target=run, name="longstride-weights", daemon=True).start()
    try:
        found, error = answers.get(timeout=seconds)
    except Empty:
        raise EngineFailure(f"the weights did not arrive within {seconds:g} s (engine.timeout)") from None
    if isinstance(error, EngineFailure | ConfigError):
        raise error
    if error is not None:
        raise EngineFailure(f"the weights did not arrive: {type(error).__name__}: {str(error)[:300]}") from error
    return found


def _free_port() -> int:
    with create_server(("", 0)) as found:
        return found.getsockname()[1]


def _free_memory() -> None:
    """Gives back what torch keeps for later: the server is about to take it."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def check_sleep(sleep: bool, shared: bool) -> None:
    """Refuses that an engine gives its memory back (`sleep`) while it has to sample beside the learner (`shared` is
    False).

    Raises:
        ConfigError: it would.
    """
    if sleep and not shared:
        raise ConfigError("engine sleep: it samples while the learner trains; set pool.staleness=0, or leave sleep out")

"""Engines as data: where a recipe's tokens come from. No torch.

What always holds: an engine that `make` returns samples from the policy's weights, under the version that it was given,
and its log-probabilities are those of each way of sampling that was named.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast

from pydantic import Field, TypeAdapter, model_validator

from longstride.core.address import Address
from longstride.core.component import Component
from longstride.core.errors import ConfigError, LongstrideWarning, ModelError, short
from longstride.core.implementation import implementation
from longstride.core.numbers import MOST, Count, CountOrZero, Positive, Seconds
from longstride.engines.base import Engine, Sampling
from longstride.engines.weights import NCCL, Weights
from longstride.models.kernels import Kernels, settled

if TYPE_CHECKING:
    from longstride.models.load import Policy

PLAIN_COSTS = "at two thirds of the speed or less, and each turn is read from its beginning"
"""What a user is told of the plain engine."""


class EngineConfig(Component):
    """Family: where tokens come from."""

    def settled(self, device: str = "cpu", model: str = "") -> Self:
        """A copy in which what depends on this machine, on the device of the policy and on its model (as `Recipe.model`
        names it, where it is known) is decided: what a run keeps and goes on with."""
        return self

    @abstractmethod
    def make(self, policy: "Policy", version: int, samplings: Sequence[Sampling], shared: bool = True) -> Engine:
        """An engine for the policy, whose weights are number `version`, and for these ways of sampling.

        Args:
            policy: the learner's.
            version: of its weights.
            samplings: all that requests will ask for.
            shared: whether the engine may sample from the policy's very tensors. If not, a learner may train them in
                place while it samples, and only `update` brings it new ones.

        Raises:
            ConfigError: policy, settings and engine do not fit each other.
        """


class Local(EngineConfig):
    """The model in this process."""

    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Arithmetic and caches; in bfloat16 log-probabilities differ from the learner's by rounding. `auto` is bfloat16 on
    CUDA and float32 elsewhere; `run.toml` says which."""
    cache_gigabytes: Positive = 4.0
    """Memory for keys and values, in 2^30 bytes, at most."""
    processes: Count | Literal["auto"] = 1
    """Processes of one thread each, for a small model on a CPU; any other stays in this process. Each has its share of
    `cache_gigabytes`. `auto`: one a core, 8 at most; `run.toml` has the number, which a run's last bits depend on."""

    kernels: Kernels = "auto"
    """What computes a pass on a CPU."""
    float32_head: bool = False
    """The head computes in float32 whatever `dtype` is: log-probabilities nearer to the learner's."""
    graphs: bool | Literal["auto"] = "auto"
    """On CUDA decoding passes are captured as CUDA graphs (`engines.graphs`). `auto`: on CUDA, for a model whose pass
    does not depend on what it computes, as one with experts does; `run.toml` says which."""
    plain: bool | Literal["auto"] = "auto"
    """Passes are the model's own, over transformers' caches (`engines.plain`): any causal model, and slower. `auto`:
    where our own attention does not fit the model; `run.toml` says which."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.graphs is True and self.plain is True:
            raise ValueError("graphs are of our own attention, and plain does without it: leave one of them out")
        return self

    def settled(self, device: str = "cpu", model: str = "") -> Self:
        from longstride.engines.local_processes import cores

        cuda = device.startswith("cuda")
        if model and "auto" in (self.plain, self.graphs):
            from longstride.engines.fit import has_fixed_pass, misfit_of

            plain = self.graphs is not True and bool(misfit_of(model)) if self.plain == "auto" else self.plain
            graphs = cuda and not plain and has_fixed_pass(model) if self.graphs == "auto" else self.graphs
            return self.replace(plain=plain, graphs=graphs).settled(device)
        processes = min(cores(), 8) if self.processes == "auto" else self.processes
        usual = "bfloat16" if cuda else "float32"
        return self.replace(
            processes=processes,
            dtype=usual if self.dtype == "auto" else self.dtype,
            kernels=settled(self.kernels) if device == "cpu" else "torch",
        )

    def make(self, policy: "Policy", version: int, samplings: Sequence[Sampling], shared: bool = True) -> Engine:
        from longstride.engines.local import LocalEngine

        now = self.settled(policy.device)
        if now.plain is True:
            return now._plainly(policy, version, shared)
        dtype, kernels = (cast(Any, kind) for kind in (now.dtype, now.kernels))
        graphs = now.graphs is True
        make = partial(LocalEngine, dtype=dtype, kernels=kernels, graphs=graphs, float32_head=now.float32_head)
        try:
            return now._in_processes(make, policy, version, shared)
        except ModelError as e:
            if now.plain is False or graphs:
                raise
            return now._plainly(policy, version, shared, f"; Longstride's own cannot sample it: {e}")

    def _plainly(self, policy: "Policy", version: int, shared: bool, why: str = "") -> Engine:
        """The plain engine, and a line of what that means."""
        from longstride.engines.plain import PlainEngine

        make = partial(PlainEngine, dtype=cast(Any, self.dtype), float32_head=self.float32_head)
        engine = self._in_processes(make, policy, version, shared)
        warnings.warn(
            f"{policy.name!r} ({type(policy.model).__name__}) is sampled plainly, by transformers' own passes and "
            f"caches: {PLAIN_COSTS}{why}",
            LongstrideWarning,
            stacklevel=3,
        )
        return engine

    def _in_processes(self, make: Callable[..., Engine], policy: "Policy", version: int, shared: bool) -> Engine:
        """The engine, or several of it in processes of their own."""
        from longstride.engines.local_processes import ProcessEngine, worth_several

        size, processes = int(self.cache_gigabytes * (1 << 30)), cast(int, self.processes)
        make = partial(make, end_ids=policy.chat.end_ids, max_context=policy.max_context, version=version)
        if processes != 1 and worth_several(policy.model):
            return ProcessEngine(policy.model, partial(make, cache_bytes=size // processes), processes, version)
        return make(policy.model, cache_bytes=size, shared=shared)


class HTTP(EngineConfig):
    """A model behind a server, or several servers of it (vLLM, SGLang)."""

    url: Address | tuple[Address, ...] | None = None
    """Where the server's interface begins: `http://127.0.0.1:8000/v1`; a list of these for several servers of one
    model. Several are used as one: see `engines.servers`."""
    servers: str | None = None
    """A file with an address a line, instead of `url`. It is read again at every update of the weights: servers may
    join and leave while a run goes on."""
    model: Annotated[str, Field(min_length=1)]
    """The model's name, as the server knows it."""
    key_env: str | None = None
    """Name of the environment variable that holds the key; a server of one's own mostly needs none."""
    timeout: Seconds = 300.0
    """Seconds for one request, from connecting to the last byte, and for each step of a push of weights."""
    retries: CountOrZero = 3
    """How often a request is sent again that was not answered, or was answered by status 429 or 5xx."""
    concurrency: Count = 64
    """Requests that are under way at once."""
    context: Annotated[int | None, Field(ge=2, le=MOST)] = None
    """Tokens of prompt and answer together, where the server has fewer than the policy (`--max-model-len`)."""
    weights: Weights | None = None
    """How new weights get there; none in training without it."""

    @model_validator(mode="after")
    def _some_server(self) -> Self:
        if bool(self.url) == (self.servers is not None):
            raise ValueError("expected url, the address of a server or a list of them, or servers, a file of addresses")
        if self.is_several and isinstance(self.weights, NCCL) and self.weights.port is not None:
            raise ValueError("weights.port: several servers meet the learner at a port each; leave it out")
        return self

    @property
    def is_several(self) -> bool:
        """Whether it is of several servers, though there may be one at the moment."""
        return not isinstance(self.url, str)

    @property
    def address(self) -> str:
        """The server's, where it is one."""
        assert isinstance(self.url, str)
        return self.url

    def addresses(self) -> list[str]:
        """Of the servers that there are now, each once.

        Raises:
            ConfigError: the file cannot be read, has none, or has a line that is no address.
        """
        if self.servers is None:
            return list(dict.fromkeys([self.url] if isinstance(self.url, str) else self.url or ()))
        try:
            lines = Path(self.servers).read_text(encoding="utf-8").splitlines()
            found = [TypeAdapter(Address).validate_python(line.strip()) for line in lines if line.strip()]
        except (OSError, ValueError) as e:
            raise ConfigError(f"engine.servers: {self.servers}: {short(str(e))}; expected an address a line") from e
        if not found:
            raise ConfigError(f"engine.servers: {self.servers} has no line; expected an address a line")
        return list(dict.fromkeys(found))

    def make(self, policy: "Policy", version: int, samplings: Sequence[Sampling], shared: bool = True) -> Engine:
        """See `engines.servers.connect`."""
        return implementation(HTTP)(self, policy, version, samplings, shared)


class VLLM(EngineConfig):
    """vLLM in this run (`longstride[vllm]`): on the learner's CUDA device, where it reads the learner's weights."""

    cards: Count = 1
    """Over which the model is cut (tensor parallelism): the learner's, and those after it that this process sees."""
    path: Annotated[str, Field(min_length=1)] | None = None
    """A folder below which new weights are written for vLLM to read, best one in memory (on Linux /dev/shm). Left out
    it reads them where the learner has them, which takes one CUDA device for both."""
    memory: Annotated[float, Field(gt=0, lt=1)] = 0.4
    """Share of each card's memory that it takes for weights, cache and passes."""
    sleep: bool = False
    """Whether it gives that memory back while the learner trains."""
    context: Annotated[int | None, Field(ge=2, le=MOST)] = None
    """Tokens of prompt and answer together, where they should be fewer than the policy's."""
    timeout: Seconds = 300.0
    """Seconds for each step of a push of weights."""

    @model_validator(mode="after")
    def _weights_reach_all_cards(self) -> Self:
        if self.cards > 1 and self.path is None:
            raise ValueError("cards: several read new weights from a folder; set path, such as /dev/shm/weights")
        return self

    def make(self, policy: "Policy", version: int, samplings: Sequence[Sampling], shared: bool = True) -> Engine:
        """See `engines.vllm_engine.start`."""
        return implementation(VLLM)(self, policy, version, samplings, shared)

"""Engines as data: where a recipe's tokens come from. No torch.

What always holds: an engine that `make` returns samples from the policy's weights, under the version that it was given,
and its log-probabilities are those of each way of sampling that was named.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, Self, cast

from pydantic import Field

from longstride.core.address import Address
from longstride.core.component import Component
from longstride.core.implementation import implementation
from longstride.core.numbers import Count
from longstride.engines.base import Engine, Sampling
from longstride.engines.weights import Weights
from longstride.models.kernels import Kernels, settled

if TYPE_CHECKING:
    from longstride.models.load import Policy


class EngineConfig(Component):
    """Family: where tokens come from."""

    def settled(self, device: str = "cpu") -> Self:
        """A copy in which what depends on this machine, and on the device of the policy, is decided: what a run keeps
        and goes on with."""
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
    cache_gigabytes: Annotated[float, Field(gt=0)] = 4.0
    """Memory for keys and values, in 2^30 bytes, at most."""
    processes: Count | Literal["auto"] = 1
    """Processes of one thread each, for a small model on a CPU; any other stays in this process. Each has its share of
    `cache_gigabytes`. `auto`: one a core, 8 at most; `run.toml` has the number, which a run's last bits depend on."""

    kernels: Kernels = "torch"
    """What computes a pass on a CPU."""
    float32_head: bool = False
    """The head computes in float32 whatever `dtype` is: log-probabilities nearer to the learner's."""
    graphs: bool = False
    """On CUDA decoding passes are captured as CUDA graphs (`engines.graphs`); not yet run on a GPU."""

    def settled(self, device: str = "cpu") -> Self:
        from longstride.engines.local_processes import cores

        processes = min(cores(), 8) if self.processes == "auto" else self.processes
        usual = "bfloat16" if device.startswith("cuda") else "float32"
        return self.replace(
            processes=processes,
            dtype=usual if self.dtype == "auto" else self.dtype,
            kernels=settled(self.kernels) if device == "cpu" else "torch",
        )

    def make(self, policy: "Policy", version: int, samplings: Sequence[Sampling], shared: bool = True) -> Engine:
        from longstride.engines.local import LocalEngine

        size = int(self.cache_gigabytes * (1 << 30))
        chat, context, now = policy.chat, policy.max_context, self.settled(policy.device)
        processes, dtype = now.processes, cast(Literal["float32", "bfloat16"], now.dtype)
        make = partial(LocalEngine, end_ids=chat.end_ids, max_context=context, version=version, dtype=dtype)
        make = partial(make, kernels=cast(Literal["torch", "native"], now.kernels))
        make = partial(make, graphs=now.graphs, float32_head=now.float32_head)
        if processes != 1:
            from longstride.engines.local_processes import ProcessEngine, worth_several

            if worth_several(policy.model):
                each = partial(make, cache_bytes=size // cast(int, processes))
                return ProcessEngine(policy.model, each, cast(int, processes), version)
        return make(policy.model, cache_bytes=size, shared=shared)


class HTTP(EngineConfig):
    """A model behind a server (vLLM, SGLang)."""

    url: Address
    """Where the server's interface begins: `http://127.0.0.1:8000/v1`."""
    model: Annotated[str, Field(min_length=1)]
    """The model's name, as the server knows it."""
    key_env: str | None = None
    """Name of the environment variable that holds the key; a server of one's own mostly needs none."""
    timeout: Annotated[float, Field(gt=0)] = 300.0
    """Seconds for one request, from connecting to the last byte, and for each step of a push of weights."""
    retries: Annotated[int, Field(ge=0)] = 3
    """How often a request is sent again that was not answered, or was answered by status 429 or 5xx."""
    concurrency: Annotated[int, Field(ge=1)] = 64
    """Requests that are under way at once."""
    context: Annotated[int | None, Field(ge=2)] = None
    """Tokens of prompt and answer together, where the server has fewer than the policy (`--max-model-len`)."""
    weights: Weights | None = None
    """How new weights get there; none in training without it."""

    def make(self, policy: "Policy", version: int, samplings: Sequence[Sampling], shared: bool = True) -> Engine:
        """See `engines.http.connect`."""
        return implementation(HTTP)(self, policy, version, samplings, shared)


class VLLM(EngineConfig):
    """vLLM in this run (`longstride[vllm]`): on the learner's CUDA device, where it reads the learner's weights."""

    memory: Annotated[float, Field(gt=0, lt=1)] = 0.4
    """Share of the card's memory that it takes for weights, cache and passes."""
    sleep: bool = False
    """Whether it gives that memory back while the learner trains."""
    context: Annotated[int | None, Field(ge=2)] = None
    """Tokens of prompt and answer together, where they should be fewer than the policy's."""
    timeout: Annotated[float, Field(gt=0)] = 300.0
    """Seconds for each step of a push of weights."""

    def make(self, policy: "Policy", version: int, samplings: Sequence[Sampling], shared: bool = True) -> Engine:
        """See `engines.vllm_engine.start`."""
        return implementation(VLLM)(self, policy, version, samplings, shared)

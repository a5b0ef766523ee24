"""vLLM and other servers as the engine of a recipe, as data. No torch."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from longstride.core.address import Address
from longstride.core.errors import ConfigError, EngineFailure
from longstride.engines.base import Engine, Request, Sampling
from longstride.engines.config import EngineConfig
from longstride.engines.weights import Weights

if TYPE_CHECKING:
    from longstride.models.load import Policy


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
        """An engine that has passed its preflight for each of `samplings`, after it took the policy's weights where it
        is said how. A server's weights are always its own, whatever `shared` says.

        Raises:
            ConfigError: the server is no match for the policy or for the settings.
            EngineFailure: it does not take the weights.
        """
        from longstride.engines.http import HTTPEngine, preflight

        if self.weights is not None:
            _check(self.weights.sleep, shared)
        engine = HTTPEngine(self, policy, version)
        engine.check_tokenizer()
        if self.weights is not None:
            engine.update(policy.model, version)
        for sampling in samplings:
            preflight(engine, policy, sampling)
        try:  # the longest prompt: later, in the middle of a run, it would fail all episodes together
            engine.generate([Request([min(policy.chat.end_ids)] * (engine.max_context - 1), 1, seed=0)])
        except EngineFailure as e:
            raise ConfigError(f"engine: no prompt of {engine.max_context - 1} tokens (set engine.context?): {e}") from e
        return engine


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
        """An engine that took the policy's weights and has passed its preflight for each of `samplings`.

        Raises:
            ConfigError: vLLM is no match for the policy or for the settings.
            MissingExtra: it is not installed.
            EngineFailure: it does not start, or does not take the weights.
        """
        from longstride.engines.http import preflight
        from longstride.engines.in_process import VLLMEngine

        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise ConfigError(
                f"engine.type=vllm runs in the one process that trains, and here are {os.environ['WORLD_SIZE']} "
                "(WORLD_SIZE); start vLLM as a server and set engine.type=http and engine.weights"
            )
        _check(self.sleep, shared)
        engine = VLLMEngine(self, policy, version)
        engine.update(policy.model, version)
        for sampling in samplings:
            preflight(engine, policy, sampling)
        return engine


def _check(sleep: bool, shared: bool) -> None:
    """Refuses sleep while the engine samples."""
    if sleep and not shared:
        raise ConfigError("engine sleep: it samples while the learner trains; set pool.staleness=0, or leave sleep out")

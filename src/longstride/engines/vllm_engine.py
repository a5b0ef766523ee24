"""vLLM as a library: the run starts its engine, on the card of the learner, and it reads new weights where they are, or
from a folder, on several cards. Of several processes that train together, and of a cluster's replicas, each has an
engine of its own.

What always holds: what `engines.http` holds of a server's completions; the calls of a push are those of
`engines.weights`, answered by the library's methods of the same names; a vLLM that fails fails what was asked of it, as
infrastructure, and all that is asked later.

Written after the source of vLLM 0.33 and tested against a library that keeps to it. On an H200 vLLM 0.33 itself (on
torch 2.11, without its compiler and graphs) took weights, gave its memory back and passed its preflights. Cut in two,
with weights by a folder, vLLM 0.32 has sampled for a run on a CPU. Several cards have not run.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from urllib.parse import parse_qsl

import torch

from longstride.core.errors import ConfigError, EngineFailure, MissingExtra
from longstride.core.implementation import implements
from longstride.engines.base import Completion, Engine, Outcome, Request, Sampling
from longstride.engines.config import VLLM
from longstride.engines.http import completion_of
from longstride.engines.preflight import preflight
from longstride.engines.weights import IPC, Folder, check_sleep
from longstride.models.load import Policy, folder_of

RANK_OF = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells a process of its place among the others."""


class VLLMEngine(Engine):
    """A client of vLLM's engine (see the module's docstring). `tokens_in` counts all tokens of a prompt.

    Raises:
        MissingExtra: vLLM is not installed.
        ConfigError: the policy is not on a CUDA device, where weights are read from it; there are fewer cards than
            `cards`; the folder of `path` cannot be made.
        EngineFailure: vLLM does not start.
    """

    def __init__(self, config: VLLM, policy: Policy, version: int = 0) -> None:
        super().__init__(version)
        self.model, self.timeout = policy.name, config.timeout
        self.max_context = min(config.context or policy.max_context, policy.max_context)
        self._folder = _folder_below(config.path) if config.path else None
        way = Folder(path=self._folder.name, sleep=config.sleep) if self._folder else IPC(sleep=config.sleep)
        self._push = way.push(self, policy)
        os.environ.setdefault("VLLM_ALLOW_INSECURE_SERIALIZATION", "1")  # handles are pickled, from here to its process
        try:
            import vllm  # pyright: ignore[reportMissingImports]
            from vllm.config import WeightTransferConfig  # pyright: ignore[reportMissingImports]
        except ImportError as e:
            raise MissingExtra("engine.type = 'vllm' needs vLLM: pip install 'longstride[vllm]'") from e
        self._library: Any = vllm
        place = str(folder_of(policy.name) or policy.name)
        with _on_cards(policy.device, config.cards):
            try:
                self._llm: Any = vllm.LLM(
                    model=place,
                    # the learner's weights are pushed before anything is sampled; dummies are never read anew
                    load_format="auto" if self._folder else "dummy",
                    skip_tokenizer_init=True,
                    max_model_len=self.max_context,
                    tensor_parallel_size=config.cards,
                    gpu_memory_utilization=config.memory,
                    enable_prefix_caching=True,
                    enable_sleep_mode=config.sleep,
                    logprobs_mode="processed_logprobs",
                    weight_transfer_config=None if self._folder else WeightTransferConfig(backend="ipc"),
                )
            except Exception as e:  # whatever vLLM and its processes have
                raise EngineFailure(f"vLLM does not start ({type(e).__name__}): {str(e)[:300]}") from e
        self._end_ids = policy.chat.end_ids
        self._vocabulary: int = policy.model.get_input_embeddings().weight.shape[0]  # pyright: ignore
        self._tickets = count()
        self._going: dict[int, tuple[Request, int]] = {}
        """By ticket the request and how many tokens it may have."""
        self._asleep = False

    def submit(self, request: Request) -> int:
        self.check(request)
        ticket, limit = next(self._tickets), min(request.max_new, max(self.max_context - len(request.prompt), 0))
        if not limit:
            self._done[ticket] = Completion([], [], [], "length" if limit == request.max_new else "context")
            return ticket
        wanted = self._library.SamplingParams(
            temperature=request.sampling.temperature,
            top_p=request.sampling.top_p,
            seed=request.seed,
            max_tokens=limit,
            stop_token_ids=sorted(self._ends(request)),
            logprobs=0,  # of the sampled token alone
            detokenize=False,
        )
        self._going[ticket] = request, limit
        self.tokens_in += len(request.prompt)
        try:
            self._llm.llm_engine.add_request(str(ticket), {"prompt_token_ids": request.prompt}, wanted)
        except Exception as e:
            self._fail(e)
        return ticket

    def poll(self) -> list[tuple[int, Outcome]]:
        """One step of vLLM. It goes on under the weights that it has."""
        if self._going:
            try:
                for said in self._llm.llm_engine.step():
                    if said.finished and int(said.request_id) in self._going:
                        self._finish(int(said.request_id), said.outputs[0])
            except Exception as e:
                self._fail(e)
        return self._take_done()

    def cancel(self, ticket: int) -> None:
        self._done.pop(ticket, None)
        if self._going.pop(ticket, None):
            self._llm.llm_engine.abort_request([str(ticket)])

    def release(self, session: int) -> None:
        """Nothing is kept here; vLLM drops its cache when it needs the memory."""

    def update(self, weights: Any, version: int) -> None:
        """Gives vLLM the weights of a module; what is under way ends under the old ones.

        Raises:
            EngineFailure: it did not take them.
            ModelError: they cannot be saved, where they go by a folder.
        """
        self._drain()
        self._push.prepare(weights, version)
        self._push(weights, version)
        self.version = version

    def rest(self) -> None:
        self._drain()
        self._push.rest()

    def close(self) -> None:
        self._push.close()
        self._llm.llm_engine.engine_core.shutdown()
        if self._folder:
            self._folder.cleanup()

    def call(
        self, path: str, body: dict[str, Any] | None = None, method: Literal["GET", "POST"] = "POST", advice: str = ""
    ) -> dict[str, Any]:
        """What a server in development mode answers (`engines.weights.Connection`), by the library's own methods."""
        name, _, query = path.partition("?")
        try:
            return self._called(name, dict(parse_qsl(query)), body or {})
        except Exception as e:
            raise EngineFailure(f"vLLM, {name}: {type(e).__name__}: {str(e)[:300]}; {advice}") from e

    def _called(self, name: str, query: dict[str, str], body: dict[str, Any]) -> dict[str, Any]:
        llm = self._llm
        match name:
            case "pause" | "resume":  # nothing is sampled but by `poll`
                return {}
            case "version":
                return {"version": self._library.__version__}
            case "weight_info":
                return {"weight_version": llm.get_weight_version()}
            case "is_sleeping":
                return {"is_sleeping": self._asleep}
            case "reset_prefix_cache":
                return {"success": bool(llm.reset_prefix_cache())}
            case "sleep":
                llm.sleep(level=int(query["level"]))
                self._asleep = True
                return {}
            case "wake_up":
                self._asleep = not llm.wake_up([query["tags"]])
                return {"status": "sleeping" if self._asleep else "awake"}
            case "init_weight_transfer_engine" | "update_weights":
                getattr(llm, name)(body)
                return {}
            case _:  # the other steps of a transfer
                getattr(llm, name)(**body)
                return {}

    def _drain(self) -> None:
        """Waits for what is under way."""
        while self._going:
            self._done |= dict(self.poll())

    def _ends(self, request: Request) -> frozenset[int]:
        return self._end_ids | {s[0] for s in request.stop if len(s) == 1}

    def _finish(self, ticket: int, said: Any) -> None:
        request, limit = self._going.pop(ticket)
        ids = [int(i) for i in said.token_ids]
        try:
            logprobs = [float(found[i].logprob) for i, found in zip(ids, said.logprobs, strict=True)]
            done = completion_of(
                request, limit, self.version, ids, logprobs, said.finish_reason, self._ends(request), self._vocabulary
            )
        except (ValueError, KeyError, TypeError) as e:
            self._done[ticket] = EngineFailure(f"vLLM gave no completion: {e}")
        else:
            self.tokens_out += len(done.ids)
            self._done[ticket] = done

    def _fail(self, error: Exception) -> None:
        """Ends all that is under way: vLLM's engine is dead when a step fails."""
        trouble = f"vLLM failed ({type(error).__name__}): {str(error)[:300]}"
        going, self._going = self._going, {}
        self._done |= {ticket: EngineFailure(trouble) for ticket in going}


def _folder_below(path: str) -> TemporaryDirectory[str]:
    """A folder of this engine's own.

    Raises:
        ConfigError: it cannot be made.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
        return TemporaryDirectory(dir=path, prefix="weights-")
    except OSError as e:
        raise ConfigError(f"engine.path: no folder can be made below {path}: {e.strerror}") from e


@contextmanager
def _on_cards(device: str, cards: int) -> Iterator[None]:
    """The environment in which vLLM starts its processes: they see so many cards, the learner's first, and are no ranks
    of the job that this process may be one of.

    Raises:
        ConfigError: fewer are there, or they are other processes' too.
    """
    if cards > 1 and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ConfigError(
            "engine.cards: the processes of torchrun have a card each; train with --cluster ray, whose replicas may "
            "have several, or sample from a server (engine.type=http)"
        )
    before, visible = dict(os.environ), os.environ.get("CUDA_VISIBLE_DEVICES")
    number = torch.device(device).index or 0
    seen = visible.split(",") if visible else [str(n) for n in range(number + cards)]
    if len(mine := seen[number : number + cards]) < cards:
        raise ConfigError(f"engine.cards is {cards}, and from {device} on this process sees {len(mine)}")
    for name in RANK_OF:
        os.environ.pop(name, None)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(mine)
    try:
        yield
    finally:
        os.environ |= {name: before[name] for name in RANK_OF if name in before}
        if visible is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = visible


@implements(VLLM)
def start(config: VLLM, policy: Policy, version: int, samplings: Sequence[Sampling], shared: bool = True) -> Engine:
    """An engine that took the policy's weights and has passed its preflight for each of `samplings`.

    Raises:
        ConfigError: vLLM is no match for the policy or for the settings.
        MissingExtra: it is not installed.
        EngineFailure: it does not start, or does not take the weights.
    """
    check_sleep(config.sleep, shared)
    engine = VLLMEngine(config, policy, version)
    engine.update(policy.model, version)
    for sampling in samplings:
        preflight(engine, policy, sampling)
    return engine

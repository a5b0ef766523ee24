"""The HTTP engine: token ids and log-probabilities from a server that speaks the OpenAI-compatible completions form
(`POST URL/completions`), and the preflight that says whether they may be trained on.

What always holds: ids go in and ids come out, and text is never tokenised again (a server that returns no ids, or read
another prompt than was sent, is refused); every sampled token has a log-probability of its own; a request is sent again
only where it was not answered, and whatever goes wrong after that is an `EngineFailure` and never a completion; what a
server sends is untrusted: bounded, parsed, and no more; the key is taken out of everything that is raised.

What it does not do: stream, follow redirects, or promise the same tokens for the same seed. A seed goes with every
request, but a server's sampler is its own, and most depend on what else is in the batch.

The form is that of vLLM (its pull request 22587) and SGLang (30917): `return_token_ids` asks for `token_ids` and
`prompt_token_ids` beside `logprobs`. Weights are pushed to vLLM alone, by calls of its development mode
(`VLLM_SERVER_DEV_MODE=1`): `/collective_rpc` with the worker's `reload_weights`, then `/reset_prefix_cache`. That part
is written against their documented form and has not been run on a GPU yet.
"""

import asyncio
import json
import shutil
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import torch
from pydantic import AliasPath, BaseModel, Field, FiniteFloat, ValidationError
from torch import Tensor

from longstride.core.errors import ConfigError, EngineFailure
from longstride.core.http import key_in, tls
from longstride.core.seeds import stream
from longstride.engines.base import Completion, Engine, Request, Sampling
from longstride.engines.config import HTTP
from longstride.models.load import Policy, save_policy

FIRST_WAIT, LONGEST_WAIT = 1.0, 20.0
"""Seconds before the first retry, and before any: each waits twice as long as the one before."""
NEUTRAL = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
"""Sent along, since servers take what a request leaves out from the model's generation_config.json."""
FORM = "expected is a server that takes and returns token ids, such as a recent vLLM or SGLang"

PROBES, PROBE_TOKENS = 8, 32
"""Prompts of a preflight, and tokens that each is continued by."""
MEAN_GAP = 0.1
"""Nats. Servers in bfloat16 are some 0.02 off a float32 model; other weights are off by more than this."""
AGREEMENT = 0.9
"""Share of greedy tokens that must be the learner's too; what rounding changes are near ties."""
MARGIN = 1.1
"""How much better, in squared error, another distribution must explain the server's numbers before it is believed."""


class _Choice(BaseModel):
    """What is read of a response."""

    ids: list[Annotated[int, Field(strict=True, ge=0)]] = Field(validation_alias=AliasPath("choices", 0, "token_ids"))
    prompt: list[int] = Field(validation_alias=AliasPath("choices", 0, "prompt_token_ids"))
    logprobs: list[Annotated[FiniteFloat, Field(le=1e-3)]] = Field(  # 0, and rounding
        validation_alias=AliasPath("choices", 0, "logprobs", "token_logprobs")
    )
    finish: Literal["stop", "length"] = Field(validation_alias=AliasPath("choices", 0, "finish_reason"))


class HTTPEngine(Engine):
    """A client of one server (see the module's docstring). `tokens_in` counts whole prompts: what the server had in its
    cache is not known here."""

    def __init__(self, config: HTTP, policy: Policy, version: int = 0) -> None:
        self.version, self.tokens_in, self.tokens_out = version, 0, 0
        self.max_context = min(config.context or policy.max_context, policy.max_context)
        """Tokens of prompt and answer together."""
        self._config, self._policy = config, policy
        self._end_ids = policy.chat.end_ids
        self._vocabulary: int = policy.model.get_input_embeddings().weight.shape[0]  # pyright: ignore
        self._pushed: Path | None = None

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Continues every prompt, `concurrency` of them at once; completions come in the order of the requests.

        With temperature 0 the distribution is a single token and every log-probability is 0, whatever the server says.

        Raises:
            EngineFailure: a request had no answer after all retries (of the first one; the others are dropped), or one
                that is no completion of its prompt.
            ConfigError: the key is not set.
        """
        if not all(request.prompt for request in requests):
            raise ValueError("a prompt needs at least one token")
        return asyncio.run(self._all(requests))

    def release(self, session: int) -> None:
        """Nothing is kept here; a server drops what it cached when it wants the room."""

    def update(self, weights: Any, version: int) -> None:
        """Takes the weights of a module: saves them in a folder of their own below `weights` of the settings, has vLLM
        load it, and removes the one before. Not to be called while another client of the server samples.

        Raises:
            ConfigError: no folder is named, so the server keeps the weights that it has.
            EngineFailure: the server did not take them.
            ModelError: they cannot be saved.
        """
        if self._config.weights is None:
            raise ConfigError(
                f"engine.weights: the server at {self._config.url} cannot take new weights, as no folder is named for "
                "them; name one that this machine and the server both see and start vLLM with VLLM_SERVER_DEV_MODE=1"
            )
        # a name of its own for each version: servers have been seen to read an old file again from their cache
        folder = Path(self._config.weights).absolute() / f"version-{version}"
        save_policy(replace(self._policy, model=weights), folder)
        asyncio.run(self._push(folder))
        if self._pushed not in (None, folder):
            shutil.rmtree(self._pushed, ignore_errors=True)
        self._pushed, self.version = folder, version

    async def _all(self, requests: Sequence[Request]) -> list[Completion]:
        async with aclosing(_Client(self._config)) as client:
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(self._complete(client, request)) for request in requests]
            except ExceptionGroup as e:
                raise e.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _complete(self, client: "_Client", request: Request) -> Completion:
        limit = min(request.max_new, max(self.max_context - len(request.prompt), 0))
        if not limit:
            return Completion([], [], [], "context")
        body = NEUTRAL | {
            "model": self._config.model,
            "prompt": request.prompt,
            "max_tokens": limit,
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            "seed": request.seed,
            "stop_token_ids": sorted(self._end_ids),
            "logprobs": 0,  # of the sampled token alone
            "return_token_ids": True,
        }
        # an id is at most 8 bytes; what belongs to a sampled one (its text, twice, and numbers) seldom over a hundred
        largest = (1 << 16) + 16 * len(request.prompt) + (1 << 10) * limit
        data = await client.post(f"{self._config.url}/completions", body, largest, FORM)
        completion = self._completion(client, request, limit, data)
        self.tokens_in += len(request.prompt)
        self.tokens_out += len(completion.ids)
        return completion

    def _completion(self, client: "_Client", request: Request, limit: int, data: bytes) -> Completion:
        try:
            choice = _Choice.model_validate_json(data)
        except ValidationError as e:
            first = e.errors(include_url=False)[0]
            place, came = ".".join(map(str, first["loc"])) or "the response", repr(first["input"])[:100]
            raise client.failure(f"{place}: {first['msg']} (got {came}); {FORM}") from None
        ids, logprobs = choice.ids, choice.logprobs
        if choice.prompt != request.prompt:
            came = len(choice.prompt)
            raise client.failure(f"it read another prompt ({came} ids) than was sent ({len(request.prompt)}); {FORM}")
        if not 0 < len(ids) == len(logprobs) <= limit:
            raise client.failure(f"{len(ids)} ids and {len(logprobs)} log-probabilities, expected 1 to {limit} of both")
        if max(ids) >= self._vocabulary:
            raise client.failure(f"id {max(ids)} is none of the policy's {self._vocabulary}; serve the policy's model")
        if not self._end_ids.isdisjoint(ids[:-1]):
            raise client.failure("it went on after an end token; expected is a server that knows stop_token_ids")
        if request.sampling.temperature <= 0:
            logprobs = [0.0] * len(ids)
        # at an end token that the chat format does not know the turn is cut, as if its tokens had run out
        cut = "length" if len(ids) == request.max_new or choice.finish == "stop" else "context"
        return Completion(ids, logprobs, [self.version] * len(ids), "stop" if ids[-1] in self._end_ids else cut)

    async def _push(self, folder: Path) -> None:
        root = self._config.url.removesuffix("/v1")
        advice = "expected is vLLM, started with VLLM_SERVER_DEV_MODE=1, that sees the folder of engine.weights"
        call = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
        async with aclosing(_Client(self._config)) as client:
            await client.post(f"{root}/collective_rpc", call, 1 << 16, advice)
            await client.post(f"{root}/reset_prefix_cache", {}, 1 << 16, advice)


class _Client:
    """Sends the requests of one call of the engine."""

    def __init__(self, config: HTTP) -> None:
        import httpx2

        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        self._config, self._key = config, key_in(config.key_env, "engine.key_env")
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        limits = httpx2.Limits(max_connections=config.concurrency)
        self._http = httpx2.AsyncClient(verify=tls(), timeout=None, limits=limits, headers=headers)
        self._places = asyncio.Semaphore(config.concurrency)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def post(self, url: str, body: dict[str, Any], largest: int, advice: str) -> bytes:
        """The body, at most `largest` bytes of it, of a response of status 200. Sends until there is a response; waits
        are halved at random, so that those who failed together do not come again together."""
        import httpx2

        config, content = self._config, json.dumps(body).encode()
        jitter = stream(body.get("seed", 0), "http", url)
        for attempt in range(config.retries + 1):
            data = bytearray()
            try:
                async with (
                    self._places,
                    asyncio.timeout(config.timeout),
                    self._http.stream("POST", url, content=content) as response,
                ):
                    async for chunk in response.aiter_raw(1 << 16):
                        data += chunk
                        if len(data) > largest:
                            raise self.failure(f"a response of more than {largest} bytes; {advice}")
            except TimeoutError:
                trouble = f"nothing whole came within {config.timeout:g} s"
            except httpx2.TransportError as e:
                trouble = str(e) or type(e).__name__
            else:
                status = response.status_code
                if status == 200:
                    return bytes(data)
                trouble = f"status {status} with {data[:300].decode(errors='replace')!r}"
                if status != 429 and status < 500:
                    raise self.failure(f"{trouble}; {advice}")
            if attempt < config.retries:
                await asyncio.sleep(min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * (0.5 + jitter.random() / 2))
        raise self.failure(
            f"{trouble} ({attempt + 1} requests sent); look after the server, or raise engine.timeout or retries"
        )

    def failure(self, trouble: str) -> EngineFailure:
        trouble = trouble.replace(self._key, "[key]") if self._key else trouble
        return EngineFailure(f"the server of {self._config.model!r} at {self._config.url}: {trouble}")


class Report(NamedTuple):
    """What a preflight measured."""

    tokens: int
    """Sampled tokens that were compared."""
    mean_gap: float
    """Mean absolute difference between the engine's log-probabilities and the learner's, in nats."""
    max_gap: float
    """The largest one."""
    agreement: float
    """Share of the engine's greedy tokens that are greedy for the learner too."""


@torch.inference_mode()
def preflight(engine: Engine, policy: Policy, sampling: Sampling | None = None) -> Report:
    """Compares an engine with the learner's model on a few prompts.

    Each token's log-probability must be that under the distribution it was drawn from. It is held against those that
    servers give instead: of the distribution before the nucleus is cut (SGLang), or the temperature too (vLLM).

    Args:
        engine: what is examined; it is asked for some five hundred tokens.
        policy: the learner's model, whose weights the engine should have.
        sampling: how tokens will be drawn; the model's own distribution if left out.

    Raises:
        ConfigError: the log-probabilities are of other weights or of another distribution (the setting to change is
            named), or there are none.
    """
    sampling = sampling or Sampling()
    # each once: the same where a setting is left at 1
    readings = list(dict.fromkeys([sampling, Sampling(temperature=sampling.temperature), Sampling()]))
    gaps, same = [], []
    try:
        for request, completion in _probe(engine, policy, sampling):
            logits_T_V, ids = _logits(policy, request, completion), torch.tensor(completion.ids)
            ours = torch.stack([logprobs_under(logits_T_V, ids, reading) for reading in readings])
            gaps.append(torch.tensor(completion.logprobs, dtype=torch.float64) - ours)
        for request, completion in _probe(engine, policy, Sampling(temperature=0.0)):
            same += (_logits(policy, request, completion).argmax(-1) == torch.tensor(completion.ids)).tolist()
    except EngineFailure as e:
        raise ConfigError(f"preflight: {e}") from e
    gap_R_N = torch.cat(gaps, 1)
    nearest = int(gap_R_N.square().mean(1).argmin())
    gap_N = gap_R_N[0].abs()
    report = Report(len(gap_N), gap_N.mean().item(), gap_N.max().item(), sum(same) / len(same))
    if report.agreement < AGREEMENT or gap_R_N[nearest].abs().mean() > MEAN_GAP:
        raise ConfigError(
            f"preflight: the engine's log-probabilities are {report.mean_gap:.3f} nats off the learner's on average "
            f"({report.max_gap:.3f} at most, {report.tokens} tokens) and {report.agreement:.0%} of its greedy tokens "
            f"agree; expected are at most {MEAN_GAP} and at least {AGREEMENT:.0%}: serve {policy.name!r} itself"
        )
    if gap_R_N[0].square().sum() > MARGIN * gap_R_N[nearest].square().sum():
        given = readings[nearest]
        wrong = [f"sampling.{n} = 1" for n in ("temperature", "top_p") if getattr(given, n) != getattr(sampling, n)]
        raise ConfigError(
            f"preflight: tokens are drawn with temperature {sampling.temperature:g} and top_p {sampling.top_p:g}, but "
            f"the log-probabilities are those of temperature {given.temperature:g} and top_p {given.top_p:g}; set "
            f"{' and '.join(wrong)}, or start vLLM with --logprobs-mode processed_logprobs"
        )
    return report


def logprobs_under(logits_T_V: Tensor, ids_T: Tensor, sampling: Sampling) -> Tensor:
    """Log-probabilities (float64, shape (T,)) of tokens under a way of sampling. A sampled token always counts as part
    of the nucleus: rounding may leave one at its rim out here and not there."""
    if sampling.temperature <= 0:
        return torch.zeros(len(ids_T), dtype=torch.float64)
    logprobs = (logits_T_V.double() / sampling.temperature).log_softmax(-1)
    given = logprobs.gather(1, ids_T[:, None])
    if sampling.top_p < 1:
        ranked = logprobs.exp().sort(descending=True).values
        least = ranked.masked_fill(ranked.cumsum(-1) - ranked >= sampling.top_p, torch.inf).amin(-1, keepdim=True)
        kept = logprobs.exp() >= torch.minimum(least, given.exp())
        given = given - logprobs.masked_fill(~kept, -torch.inf).logsumexp(-1, keepdim=True)
    return given.flatten()


def _probe(engine: Engine, policy: Policy, sampling: Sampling) -> list[tuple[Request, Completion]]:
    prompts = [policy.chat.head(f"Count to {k}.") + policy.chat.observation("1", first=True) for k in range(PROBES)]
    requests = [Request(prompt, PROBE_TOKENS, seed=k, sampling=sampling) for k, prompt in enumerate(prompts)]
    return list(zip(requests, engine.generate(requests), strict=True))


def _logits(policy: Policy, request: Request, completion: Completion) -> Tensor:
    """The learner's logits at each sampled place, on the CPU: (T, vocabulary)."""
    model: Any = policy.model
    ids = torch.tensor([request.prompt + completion.ids], device=next(model.parameters()).device)
    return model(input_ids=ids, use_cache=False).logits[0, len(request.prompt) - 1 : -1].float().cpu()

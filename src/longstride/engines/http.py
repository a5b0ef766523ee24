"""The HTTP engine: token ids and log-probabilities from a server that speaks the OpenAI-compatible completions form
(`POST URL/completions`), and the preflight that says whether they may be trained on.

What always holds: ids go in and ids come out, and text is never tokenised again (a server that returns no ids, or read
another prompt than was sent, is refused); every sampled token has a log-probability of its own; a request is sent again
only where it was not answered, and whatever goes wrong after that is an `EngineFailure` and never a completion; what a
server sends is untrusted: bounded, parsed, and no more; the key is taken out of everything that is raised.

What it does not do: stream, follow redirects, or promise the same tokens for the same seed. A seed goes with every
request, but a server's sampler is its own, and most depend on what else is in the batch.

The form is that of vLLM (its pull request 22587) and SGLang (30917): `return_token_ids` asks for `token_ids` and
`prompt_token_ids` beside `logprobs`. How new weights get there stands in `engines.weights`.
"""

import asyncio
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from itertools import count
from typing import Annotated, Any, Literal, TypeVar

import torch.distributed as dist
from pydantic import AfterValidator, AliasPath, BaseModel, Field, ValidationError

from longstride.core import http
from longstride.core.background import Background
from longstride.core.errors import ConfigError, EngineFailure, LongstrideError
from longstride.core.foreign import json_object
from longstride.core.http import HTTPResponse, key_in, without_key
from longstride.core.implementation import implements
from longstride.core.seeds import stream
from longstride.engines.base import Completion, Engine, Outcome, Request, Sampling
from longstride.engines.config import HTTP
from longstride.engines.preflight import preflight
from longstride.engines.weights import Push, check_sleep
from longstride.models.load import Policy

T = TypeVar("T")

POLL_SECONDS = 0.05
"""How long a poll waits for something to come back."""
KEPT_OPEN = 2.0
"""Seconds for which a connection is kept between requests: less than servers do (uvicorn 5), so that none is used that
is just being closed."""
NEUTRAL = {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
"""Sent along, since servers take what a request leaves out from the model's generation_config.json."""
LEAST = -100.0
"""Log-probability of a sampled token: less is sampled never, and only a broken server says so."""
FORM = "expected is a server that takes and returns token ids, such as a recent vLLM or SGLang"


def _at_most_0(logprob: float) -> float:
    """Without what rounding added."""
    return min(logprob, 0.0)


class _Choice(BaseModel):
    """What is read of a response."""

    ids: list[Annotated[int, Field(strict=True, ge=0)]] = Field(validation_alias=AliasPath("choices", 0, "token_ids"))
    prompt: list[int] = Field(validation_alias=AliasPath("choices", 0, "prompt_token_ids"))
    logprobs: list[Annotated[float, Field(ge=LEAST, le=1e-3), AfterValidator(_at_most_0)]] = Field(
        validation_alias=AliasPath("choices", 0, "logprobs", "token_logprobs")
    )
    finish: Literal["stop", "length"] = Field(validation_alias=AliasPath("choices", 0, "finish_reason"))


class HTTPEngine(Engine):
    """A client of one server (see the module's docstring). `tokens_in` counts all tokens of a prompt:
    what the server had in its cache is not known here. With temperature 0 every log-probability is 0, whatever the
    server says.

    Requests are under way in a thread, between polls too. It ends with `close`, or with the engine.
    """

    def __init__(self, config: HTTP, policy: Policy, version: int = 0) -> None:
        super().__init__(version)
        self.max_context = min(config.context or policy.max_context, policy.max_context)
        """Tokens of prompt and answer together."""
        self._config, self._policy = config, policy
        self.model, self.timeout = config.model, config.timeout
        self.adapters = config.weights is not None and config.weights.adapters
        self._tickets = count()
        self._client: _Client | None = None
        self._going: dict[int, Future[Completion]] = {}
        self._push: Push | None = None

    def submit(self, request: Request) -> int:
        """See the family. At most `concurrency` requests are sent at once.

        Raises:
            ConfigError: the key is not set.
            ModelError, ValueError: as `check`.
        """
        self.check(request)
        ticket, limit = next(self._tickets), min(request.max_new, max(self.max_context - len(request.prompt), 0))
        if limit:
            client, served = self._connected(), self._push.served if self._push else self.model
            self._going[ticket] = client.start(client.complete(request, limit, self.version, served))
            self.tokens_in += len(request.prompt)
        else:
            self._done[ticket] = Completion([], [], [], "length" if limit == request.max_new else "context")
        return ticket

    def poll(self) -> list[tuple[int, Outcome]]:
        """Waits until something has come back, for `POLL_SECONDS` at most. A request fails where it had no answer after
        all retries, or one that is no completion of its prompt."""
        if not self._done:
            wait(self._going.values(), POLL_SECONDS, FIRST_COMPLETED)
        for ticket, future in [(t, f) for t, f in self._going.items() if f.done()]:
            del self._going[ticket]
            try:
                completion = future.result()
            except EngineFailure as e:
                self._done[ticket] = e
            else:
                self.tokens_out += len(completion.ids)
                self._done[ticket] = completion
        return self._take_done()

    def cancel(self, ticket: int) -> None:
        self._done.pop(ticket, None)
        future = self._going.pop(ticket, None)
        if future is not None:
            future.cancel()

    def release(self, session: int) -> None:
        """Nothing is kept here; a server drops its cache when it needs the memory."""

    def update(self, weights: Any, version: int) -> None:
        """Gives the server the weights of a module as `weights` of the settings says. Before that, it waits for all
        requests that are under way, since a server does not tell which token came from which weights: they end under
        the old ones. Not to be called while another client of the server samples.

        Where several processes train, all of them call this: each waits for its own requests, then the first one gives
        its weights.

        Raises:
            ConfigError: it is not said how, so the server keeps the weights that it has; or the key is not set.
            EngineFailure: the server did not take them.
            ModelError: they cannot be saved.
        """
        if self._config.weights is None:
            raise ConfigError(
                f"engine.weights: it is not said how the server at {self._config.url} gets new weights; set "
                "engine.weights.type: ipc (vLLM on the same card), nccl (vLLM on others), adapters (of learner.lora), "
                "folder (vLLM) or disk (SGLang)"
            )
        if self._push is None:
            self._push = self._config.weights.push(self, self._policy)
        push = self._push

        def give() -> str:
            try:
                push(weights, version)
            except EngineFailure as e:
                raise self._connected().failure(str(e)) from e
            return push.served

        wait(self._going.values())
        push.served = by_the_first(give)
        self.version = version

    def rest(self) -> None:
        """Waits for all requests that are under way; then the server gives its memory back, where that is set."""
        if self._push is not None:
            wait(self._going.values())
            by_the_first(self._push.rest)

    def call(
        self, path: str, body: dict[str, Any] | None = None, method: Literal["GET", "POST"] = "POST", advice: str = ""
    ) -> dict[str, Any]:
        """See `engines.weights.Connection`. A call is sent once: most change the server, and one that was not answered
        may have done so."""
        client = self._connected()
        return client.start(client.control(path, body, method, advice)).result()

    def check_tokenizer(self) -> None:
        """Refuses a server that reads text as other ids, by its `/tokenize` where it has that.

        Raises:
            ConfigError: names the tokenizer and where the ids differ.
        """
        text = "Longstride counts: 1, 2, 3.\n  naïve café <b>42</b>"
        body = {"model": self._config.model, "prompt": text, "add_special_tokens": False}
        try:
            theirs = self.call("tokenize", body).get("tokens")
        except EngineFailure:  # not there, or none that answers: what is asked for next says it
            return
        ours = self._policy.tokenizer(text, add_special_tokens=False)["input_ids"]
        if isinstance(theirs, list) and theirs != ours:
            place = next((k for k, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b), len(ours))
            raise ConfigError(
                f"engine: the server of {self._config.model!r} has another tokenizer than {self._policy.name!r}: it "
                f"reads a test text as {len(theirs)} ids and not {len(ours)}, other ones from place {place}; serve "
                f"{self._policy.name!r} with its own tokenizer"
            )

    def close(self) -> None:
        """Drops all requests and closes the connections."""
        if self._push is not None:
            push, self._push = self._push, None
            push.close()
        if self._client is not None:
            self._client.close()
            self._client.thread.join()

    def _connected(self) -> "_Client":
        if self._client is None:
            self._client = _Client(self._config, self._policy)
            weakref.finalize(self, self._client.close).atexit = False
        return self._client


@implements(HTTP)
def connect(config: HTTP, policy: Policy, version: int, samplings: Sequence[Sampling], shared: bool = True) -> Engine:
    """An engine that has passed its preflight for each of `samplings`, after it took the policy's weights where it is
    said how. A server's weights are always its own, whatever `shared` says.

    Raises:
        ConfigError: the server is no match for the policy or for the settings.
        EngineFailure: it does not take the weights.
    """
    if config.weights is not None:
        check_sleep(config.weights.sleep, shared)
    engine = HTTPEngine(config, policy, version)
    engine.check_tokenizer()
    if config.weights is not None:
        engine.update(policy.model, version)
    for sampling in samplings:
        preflight(engine, policy, sampling)
    try:  # the longest prompt: later, in the middle of a run, it would fail all episodes together
        engine.generate([Request([min(policy.chat.end_ids)] * (engine.max_context - 1), 1, seed=0)])
    except EngineFailure as e:
        raise ConfigError(f"engine: no prompt of {engine.max_context - 1} tokens (set engine.context?): {e}") from e
    return engine


def by_the_first(work: Callable[[], T]) -> T:
    """What `work` returns in the first of the processes that train together, in all of them: it begins when all have
    come here, and none goes on before it has ended. In one process, that.

    Raises:
        LongstrideError: `work` raised it, in the first.
    """
    if not dist.is_initialized():
        return work()
    rank = dist.get_rank()
    dist.all_gather_object([None] * dist.get_world_size(), rank)
    said: list[Any] = [None, None]
    if rank == 0:
        try:
            said[0] = work()
        except LongstrideError as e:
            said[1] = e
    dist.broadcast_object_list(said)
    if said[1] is not None:
        raise said[1]
    return said[0]


class _Client(Background):
    """Sends requests from a thread of its own."""

    def __init__(self, config: HTTP, policy: Policy) -> None:
        import httpx2

        self._config, self._key = config, key_in(config.key_env, "engine.key_env")
        limits = httpx2.Limits(max_connections=config.concurrency, keepalive_expiry=KEPT_OPEN)
        self._http = http.client(self._key, limits=limits)
        self._places = asyncio.Semaphore(config.concurrency)
        self._end_ids = policy.chat.end_ids
        self._vocabulary: int = policy.model.get_input_embeddings().weight.shape[0]  # pyright: ignore
        super().__init__("longstride-http-engine", self._http.aclose)

    async def complete(self, request: Request, limit: int, version: int, served: str) -> Completion:
        """What the server sampled for a request from the model called `served`, at most `limit` tokens."""
        ends = self._end_ids | {s[0] for s in request.stop if len(s) == 1}
        body = NEUTRAL | {
            "model": served,
            "prompt": request.prompt,
            "max_tokens": limit,
            "temperature": request.sampling.temperature,
            "top_p": request.sampling.top_p,
            "seed": request.seed,
            "stop_token_ids": sorted(ends),
            "logprobs": 0,  # of the sampled token alone
            "return_token_ids": True,
        }
        # an id is at most 8 bytes; what belongs to a sampled one (its text, twice, and numbers) seldom over a hundred
        largest = (1 << 16) + 16 * len(request.prompt) + (1 << 10) * limit
        data = await self._post(f"{self._config.url}/completions", body, largest, FORM)
        try:
            choice = _Choice.model_validate_json(data)
        except ValidationError as e:
            first = e.errors(include_url=False)[0]
            place, came = ".".join(map(str, first["loc"])) or "the response", repr(first["input"])[:100]
            raise self.failure(f"{place}: {first['msg']} (got {came}); {FORM}") from None
        ids, logprobs = choice.ids, choice.logprobs
        if choice.prompt != request.prompt:
            came = len(choice.prompt)
            raise self.failure(f"it read another prompt ({came} ids) than was sent ({len(request.prompt)}); {FORM}")
        try:
            return completion_of(request, limit, version, ids, logprobs, choice.finish, ends, self._vocabulary)
        except ValueError as e:
            raise self.failure(str(e)) from None

    async def control(
        self, path: str, body: dict[str, Any] | None, method: Literal["GET", "POST"], advice: str
    ) -> dict[str, Any]:
        """The JSON object that answers a call outside of `/v1`; empty where there is none."""
        url = f"{self._config.url.removesuffix('/v1')}/{path}"
        data = await self._post(url, body, 1 << 20, advice, retries=0, method=method)
        return json_object(data)

    async def _post(
        self,
        url: str,
        body: dict[str, Any] | None,
        largest: int,
        advice: str,
        retries: int | None = None,
        method: Literal["GET", "POST"] = "POST",
    ) -> bytes:
        """The body, at most `largest` bytes of it, of an answer of status 200."""
        config = self._config
        retries = config.retries if retries is None else retries

        async def send() -> HTTPResponse:
            async with self._places:
                return await http.post(self._http, url, body, config.timeout, largest, method)

        came = await http.retry(send, retries, stream((body or {}).get("seed", 0), "http", url))
        if isinstance(came, TimeoutError):
            trouble = f"nothing whole came within {config.timeout:g} s"
        elif isinstance(came, Exception):
            trouble = str(came) or type(came).__name__
        elif came.body is None:
            raise self.failure(f"a response of more than {largest} bytes; {advice}")
        elif came.status == 200:
            return came.body
        else:
            trouble = f"status {came.status} with {without_key(came.text, self._key)[:300]!r}"
            if not came.is_busy:
                raise self.failure(f"{trouble}; {advice}")
        raise self.failure(
            f"{trouble} ({retries + 1} requests sent); look after the server, or raise engine.timeout or retries"
        )

    def failure(self, trouble: str) -> EngineFailure:
        """What went wrong, with the server's name."""
        server = f"the server of {self._config.model!r} at {self._config.url}"
        said = without_key(trouble, self._key)
        return EngineFailure(said if said.startswith(server) else f"{server}: {said}")


def completion_of(
    request: Request,
    limit: int,
    version: int,
    ids: list[int],
    logprobs: list[float],
    finish: str | None,
    ends: frozenset[int],
    vocabulary: int,
) -> Completion:
    """A request's completion, of what vLLM or SGLang say that they sampled.

    Args:
        request: what was asked for.
        limit: tokens that were asked for at most: fewer than the request's where the context ends.
        version: of the weights.
        ids: the sampled tokens.
        logprobs: of each.
        finish: why it ended, `stop` or `length`.
        ends: ids that end it.
        vocabulary: of the policy.

    Raises:
        ValueError: it cannot be trusted; says what is wrong.
    """
    if finish not in ("stop", "length"):
        raise ValueError(f"it ended with {finish!r}, expected stop or length")
    if not 0 < len(ids) == len(logprobs) <= limit:
        raise ValueError(f"{len(ids)} ids and {len(logprobs)} log-probabilities, expected 1 to {limit} of both")
    if max(ids) >= vocabulary:
        raise ValueError(f"id {max(ids)} is none of the policy's {vocabulary}; serve the policy's model")
    if not ends.isdisjoint(ids[:-1]):
        raise ValueError("it went on after an end token; expected is a server that knows stop_token_ids")
    # a sampler that knows the longer sequences would have stopped here: what came before is what it samples
    n = next((n for n in range(1, len(ids)) if request.stopped(ids[:n])), len(ids)) if request.stop else len(ids)
    # at an end token that the chat format does not know the turn is cut, as if its tokens had run out
    cut = "length" if n == request.max_new or finish == "stop" else "context"
    stopped = ids[n - 1] in ends or request.stopped(ids[:n])
    if request.sampling.temperature <= 0:
        logprobs = [0.0] * n
    return Completion(ids[:n], logprobs[:n], [version] * n, "stop" if stopped else cut)

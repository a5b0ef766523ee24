"""The HTTP engine: token ids and log-probabilities from a server that speaks the OpenAI-compatible completions form
(`POST URL/completions`), and the preflight that says whether they may be trained on.

What always holds: ids go in and ids come out, and text is never tokenised again (a server that returns no ids, or read
another prompt than was sent, is refused); every sampled token has a log-probability of its own; a request is sent again
only where it was not answered, and whatever goes wrong after that is an `EngineFailure` and never a completion; where
weights have a label, what a server sampled is taken when it has said, after that, that it still has this run's newest;
what a server sends is untrusted: bounded, parsed, and no more; the key is taken out of everything that is raised.

What it does not do: stream, follow redirects, or promise the same tokens for the same seed. A seed goes with every
request, but a server's sampler is its own, and most depend on what else is in the batch.

The form is that of vLLM (its pull request 22587) and SGLang (30917): `return_token_ids` asks for `token_ids` and
`prompt_token_ids` beside `logprobs`. How new weights get there stands in `engines.weights`.
"""

import asyncio
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import count
from queue import Empty, SimpleQueue
from typing import Annotated, Any, Literal, TypeVar

import torch.distributed as dist
from pydantic import AfterValidator, AliasPath, BaseModel, Field, ValidationError

from longstride.core import http
from longstride.core.background import Background
from longstride.core.errors import ConfigError, EngineFailure, LongstrideError
from longstride.core.foreign import json_object
from longstride.core.http import HTTPResponse, key_in, without_key
from longstride.core.seeds import stream
from longstride.engines.base import Completion, Engine, Outcome, Refused, Request, Sampling
from longstride.engines.config import HTTP
from longstride.engines.preflight import preflight
from longstride.engines.weights import Push
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
LABEL_PATH = "weight_info"
"""Where vLLM says which weights it has, as a trainer named them."""
LOOK_SECONDS = 10.0
"""Within which a server has to say that it is there."""
REFUSALS = (400, 413, 422)
"""Statuses by which a server says that a request is none that it takes; any other is about the server."""


@dataclass(frozen=True)
class Taken:
    """How a server has the newest weights."""

    served: str
    """The model's name under which they are sampled from."""
    label: str = ""
    """What it says that they are; empty where it does not say."""


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

    Args:
        config: names one server.
        policy: the learner's.
        version: of its weights.
        told: called in the other thread whenever something has come back.
    """

    def __init__(self, config: HTTP, policy: Policy, version: int = 0, told: Callable[[], None] | None = None) -> None:
        super().__init__(version)
        self.max_context = min(config.context or policy.max_context, policy.max_context)
        """Tokens of prompt and answer together."""
        self._config, self._policy = config, policy
        self.model, self.timeout = config.model, config.timeout
        self.adapters = config.weights is not None and config.weights.adapters
        self._tickets = count()
        self._client: _Client | None = None
        self._going: dict[int, Future[Completion]] = {}
        self._came: SimpleQueue[int] = SimpleQueue()
        """Tickets that are answered: asking every future costs more the more are under way."""
        self._told = told or (lambda: None)
        self._push: Push | None = None
        self._taken = Taken(config.model)

    def submit(self, request: Request) -> int:
        """See the family. At most `concurrency` requests are sent at once.

        Raises:
            ConfigError: the key is not set.
            ModelError, ValueError: as `check`.
        """
        self.check(request)
        ticket, limit = next(self._tickets), min(request.max_new, max(self.max_context - len(request.prompt), 0))
        if limit:
            client = self._connected()
            future = client.start(client.complete(request, limit, self.version, self._taken))
            self._going[ticket] = future
            future.add_done_callback(lambda _: self._over(ticket))
            self.tokens_in += len(request.prompt)
        else:
            self._done[ticket] = Completion([], [], [], "length" if limit == request.max_new else "context")
            self._told()
        return ticket

    def poll(self) -> list[tuple[int, Outcome]]:
        """Waits until something has come back, for `POLL_SECONDS` at most. A request fails where it had no answer after
        all retries, or one that is no completion of its prompt."""
        with suppress(Empty):
            if self._going and not self._done:
                self._take(self._came.get(timeout=POLL_SECONDS))
        return self.collect()

    def collect(self) -> list[tuple[int, Outcome]]:
        """As `poll`, without waiting."""
        with suppress(Empty):
            while True:
                self._take(self._came.get_nowait())
        return self._take_done()

    def _drain(self) -> None:
        """Waits for all requests that are under way."""
        wait(self._going.values())
        for ticket in list(self._going):
            self._take(ticket)

    def _take(self, ticket: int) -> None:
        future = self._going.pop(ticket, None)
        if future is None:  # it was cancelled
            return
        try:
            completion = future.result()
        except EngineFailure as e:
            self._done[ticket] = e
        else:
            self.tokens_out += len(completion.ids)
            self._done[ticket] = completion

    def _over(self, ticket: int) -> None:
        self._came.put(ticket)
        self._told()

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
        self._pushing()  # in every process: `rest` goes by it, and what one waits for in it, all have to come to
        self._drain()
        self.take(by_the_first(lambda: self.give(weights, version)), version)

    def prepare(self, weights: Any, version: int) -> None:
        """What a push does before the server has to wait, and once for all servers of a run: `Push.prepare`."""
        self._pushing().prepare(weights, version)

    def give(self, weights: Any, version: int, prepared: bool = False) -> Taken:
        """The push of `update` alone: no request may be under way.

        Raises:
            As `update`.
        """
        push = self._pushing()
        if not prepared:
            push.prepare(weights, version)
        try:
            push(weights, version)
        except EngineFailure as e:
            raise self._connected().failure(str(e)) from e
        return Taken(push.served, push.label)

    def take(self, taken: Taken, version: int) -> None:
        """Samples from now on from weights that the server has as `give` returned it, in whatever process."""
        self._taken, self.version = taken, version

    def look(self) -> "Future[str]":
        """Asks the server whether it answers, and for the label of its weights (empty where they have none); the future
        raises `EngineFailure`."""
        client = self._connected()
        return client.start(client.look(bool(self._taken.label)))

    @property
    def label(self) -> str:
        """Of the newest weights that the server took; empty where it says none."""
        return self._taken.label

    def rest(self) -> None:
        """Waits for all requests that are under way; then the server gives its memory back, where that is set."""
        if self._push is not None:
            self._drain()
            by_the_first(self.give_memory_back)

    def give_memory_back(self) -> None:
        """What `rest` asks of the server; no request may be under way."""
        self._pushing().rest()

    def _pushing(self) -> Push:
        if self._config.weights is None:
            raise ConfigError(
                f"engine.weights: it is not said how the server at {self._config.address} gets new weights; set "
                "engine.weights.type: ipc (vLLM on the same card), nccl (vLLM on others), adapters (of learner.lora), "
                "folder (vLLM) or disk (SGLang)"
            )
        if self._push is None:
            self._push = self._config.weights.push(self, self._policy)
        return self._push

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

    def examine(self, samplings: Sequence[Sampling], model: Any = None) -> None:
        """Holds the server against the weights that it should have: those of `model`, or of the policy.

        Raises:
            ConfigError: the preflight of one way of sampling fails, or it takes no prompts of the policy's length.
        """
        policy = self._policy if model is None else replace(self._policy, model=model)
        for sampling in samplings:
            preflight(self, policy, sampling)
        try:  # the longest prompt: later, in the middle of a run, it would fail all episodes together
            self.generate([Request([min(policy.chat.end_ids)] * (self.max_context - 1), 1, seed=0)])
        except EngineFailure as e:
            raise ConfigError(f"engine: no prompt of {self.max_context - 1} tokens (set engine.context?): {e}") from e

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

        self._config, self._url, self._key = config, config.address, key_in(config.key_env, "engine.key_env")
        # beside the requests there may be a call and a question for the label
        limits = httpx2.Limits(max_connections=config.concurrency + 2, keepalive_expiry=KEPT_OPEN)
        self._http = http.client(self._key, limits=limits)
        self._places = asyncio.Semaphore(config.concurrency)
        self._end_ids = policy.chat.end_ids
        self._vocabulary: int = policy.model.get_input_embeddings().weight.shape[0]  # pyright: ignore
        self._asked: asyncio.Task[str] | None = None
        self._next: asyncio.Task[str] | None = None
        """The question for the label that is under way, and the one after it."""
        super().__init__("longstride-http-engine", self._http.aclose)

    async def complete(self, request: Request, limit: int, version: int, taken: Taken) -> Completion:
        """What the server sampled for a request from the weights that it has taken, at most `limit` tokens."""
        ends = self._end_ids | {s[0] for s in request.stop if len(s) == 1}
        body = NEUTRAL | {
            "model": taken.served,
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
        data = await self._post(f"{self._url}/completions", body, largest, FORM)
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
            found = completion_of(request, limit, version, ids, logprobs, choice.finish, ends, self._vocabulary)
        except ValueError as e:
            raise self.failure(str(e)) from None
        if taken.label and (label := await self.label()) != taken.label:
            raise self.failure(
                f"it has weights {label!r} where this run gave it {taken.label!r}: another run uses it too, or it was "
                "started again"
            )
        return found

    async def label(self) -> str:
        """What the server says, after now, that its weights are; one question is for all who ask meanwhile."""
        if self._next is None:
            self._next = asyncio.create_task(self._label_after(self._asked))
        return await asyncio.shield(self._next)

    async def _label_after(self, before: "asyncio.Task[str] | None") -> str:
        if before is not None:
            await asyncio.wait([before])
        self._asked, self._next = self._next, None
        said = await self.control(LABEL_PATH, None, "GET", FORM, self._config.retries)
        return str(said.get("weight_version"))

    async def look(self, labelled: bool) -> str:
        """The label of the server's weights, where they have one; see `HTTPEngine.look`."""
        path = LABEL_PATH if labelled else "health"
        send = http.post(self._http, self._place(path), None, LOOK_SECONDS, 1 << 16, "GET")
        came = await http.retry(lambda: send, 0, stream(0, "http"))
        if isinstance(came, Exception):
            raise self.failure(str(came) or f"no answer within {LOOK_SECONDS:g} s")
        if came.status >= 500 or (labelled and came.status != 200):
            raise self.failure(f"status {came.status} of /{path}")
        return str(json_object(came.body or b"").get("weight_version")) if labelled else ""

    def _place(self, path: str) -> str:
        """An address outside of `/v1`."""
        return f"{self._url.removesuffix('/v1')}/{path}"

    async def control(
        self, path: str, body: dict[str, Any] | None, method: Literal["GET", "POST"], advice: str, retries: int = 0
    ) -> dict[str, Any]:
        """The JSON object that answers a call outside of `/v1`; empty where there is none. It waits for no place."""
        data = await self._post(self._place(path), body, 1 << 20, advice, retries, method, nullcontext())
        return json_object(data)

    async def _post(
        self,
        url: str,
        body: dict[str, Any] | None,
        largest: int,
        advice: str,
        retries: int | None = None,
        method: Literal["GET", "POST"] = "POST",
        place: AbstractAsyncContextManager[Any] | None = None,
    ) -> bytes:
        """The body, at most `largest` bytes of it, of an answer of status 200."""
        config = self._config
        retries = config.retries if retries is None else retries

        async def send() -> HTTPResponse:
            async with place or self._places:
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
                raise self.failure(f"{trouble}; {advice}", Refused if came.status in REFUSALS else EngineFailure)
        raise self.failure(
            f"{trouble} ({retries + 1} requests sent); look after the server, or raise engine.timeout or retries"
        )

    def failure(self, trouble: str, kind: type[EngineFailure] = EngineFailure) -> EngineFailure:
        """What went wrong, with the server's name."""
        server = f"the server of {self._config.model!r} at {self._url}"
        said = without_key(trouble, self._key)
        return kind(said if said.startswith(server) else f"{server}: {said}")


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

"""A language model behind an ordinary chat API: OpenAI's chat completions (`POST URL/chat/completions`), which OpenAI,
Ollama, vLLM, SGLang, llama.cpp, `transformers serve` and most hosts of models speak. No torch.

What always holds: text goes in and text comes out, so nothing of it is ever trained; a request is sent again only where
there was no answer, or one of status 429 or 5xx, and holds its place among those under way until it is settled; the key
is read from the environment, goes to the server, and is taken out of everything that is kept or raised; what a server
sends is untrusted: bounded, parsed, and no more.

What it does not do: stream, follow redirects, or promise the same words for the same seed.

| it answers | what that is |
|---|---|
| 429, 5xx, nothing in time, no connection | waited for, as long as it asks (`Retry-After`, at most 20 s) or twice as long each time; then the episode failed |
| 413, or a 400, 422 or 500 whose error's code, type or words say that the prompt is too long | the end of the model's context |
| 401, 402, 403, 404, a quota that is used up | the end of the evaluation: it would be said of every request |
| anything else, also no JSON | a failed episode; the end of the evaluation where nothing was answered before |
"""  # noqa: E501 (a table)

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import Future
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AliasPath, BaseModel, Field, ValidationError

from longstride.core import http
from longstride.core.address import Address
from longstride.core.background import Background
from longstride.core.component import Component
from longstride.core.errors import ConfigError, EngineFailure, short
from longstride.core.foreign import UnreadableError, json_object, read_json
from longstride.core.http import HTTPResponse, key_in, without_key
from longstride.core.numbers import Count, CountOrZero, Seconds, Weight
from longstride.core.seeds import stream
from longstride.core.trajectory import Usage

KEPT_OPEN = 2.0
"""Seconds for which a connection is kept between requests: less than servers do (uvicorn 5), so that none is used that
is just being closed."""
UNREACHED_RETRIES = 2
"""How often a request is sent again to a server that has never answered: it is probably not there."""
MOST_TOKENS = 2**40
"""No server counts more of them in an answer."""
_SPENT = re.compile("insufficient_quota|billing_hard_limit")
FULL = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length", "request_too_large"}
"""Codes and types of errors that say that a prompt has no room: OpenAI and most that follow it; llama.cpp; OpenAI for
a text that is too long by itself; Anthropic."""
_TOO_LONG = re.compile(
    "context[ _](length|window|size)|maximum model length|prompt is too long|input is too long|input token count|"
    "too many tokens in the prompt|`inputs` tokens",
    re.I,
)
"""What servers say of such a prompt that give no code for it: vLLM, SGLang, Anthropic, Bedrock, Gemini, TGI."""


class ChatAPI(Component):
    """A model behind a chat API. It can be evaluated, and speak, teach or take over beside a policy; it cannot be
    trained: the API gives neither tokens nor their log-probabilities."""

    url: Address
    """Where the interface begins: `http://127.0.0.1:11434/v1`."""
    name: Annotated[str, Field(min_length=1)]
    """The model's name, as the server knows it."""
    key_env: str | None = None
    """Name of the environment variable that holds the key; a server of one's own mostly needs none."""
    timeout: Seconds = 120.0
    """Seconds for one request, from connecting to the last byte."""
    retries: CountOrZero = 8
    """How often a request is sent again that was not answered, or was answered by status 429 or 5xx: over a minute in
    all, for limits by the minute."""
    concurrency: Count = 8
    """Requests that are under way at once, those that wait to be sent again included."""
    limit_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What a request calls the limit of sampled tokens: newer models of OpenAI want the second name."""
    seeded: bool = True
    """Whether a seed is sent, of the episode and its turn; some servers refuse it."""
    body: dict[str, Any] = {}
    """What is sent besides, or in place of what is sent: `{reasoning_effort = "low"}`."""
    price_in: Weight = 0.0
    """Of a million tokens that are read, in any currency."""
    price_cached: Weight | None = None
    """Of a million of those that the server had in its cache; as others where left out."""
    price_out: Weight = 0.0
    """Of a million tokens that are sampled."""

    def __str__(self) -> str:
        return f"{self.name} at {self.url}"

    def cost(self, read: int, cached: int, sampled: int) -> float:
        """By the prices."""
        price_cached = self.price_in if self.price_cached is None else self.price_cached
        return ((read - cached) * self.price_in + cached * price_cached + sampled * self.price_out) / 1e6


class _Function(BaseModel):
    name: str
    arguments: str | dict[str, Any] = ""


class _ToolCall(BaseModel):
    function: _Function


class _Part(BaseModel):
    text: str = ""


class _Message(BaseModel):
    """What is read of an answer."""

    content: str | list[_Part] | None = None
    tool_calls: list[_ToolCall] | None = None
    reasoning_content: Any = None
    """Of vLLM, SGLang, DeepSeek."""
    reasoning: Any = None
    """Of Ollama, OpenRouter."""

    @property
    def functions(self) -> list[_Function]:
        return [call.function for call in self.tool_calls or ()]


class _Response(BaseModel):
    message: _Message = Field(validation_alias=AliasPath("choices", 0, "message"))
    finish: str | None = Field(None, validation_alias=AliasPath("choices", 0, "finish_reason"))
    usage: Any = None


class Said(NamedTuple):
    """What a model said."""

    text: str
    """Its words, without thoughts and calls."""
    thought: str
    """What it says that it thought."""
    calls: tuple[tuple[str, str | dict[str, Any]], ...]
    """Name and arguments of each call; arguments that are no JSON object as their text."""
    finish: Literal["stop", "length"]
    usage: Usage | None
    """None where the server does not count."""


class ContextFull(Exception):  # noqa: N818 (nothing went wrong)
    """The prompt leaves no room in the model's context."""


class ChatClient(Background):
    """Asks one model, from a thread of its own.

    Raises:
        ConfigError: the key is not set.
    """

    def __init__(self, api: ChatAPI, where: str = "model") -> None:
        import httpx2

        self.api, self._key = api, key_in(api.key_env, f"{where}.key_env")
        self._http = http.client(self._key, limits=httpx2.Limits(keepalive_expiry=KEPT_OPEN))
        self._places = asyncio.Semaphore(api.concurrency)
        self._reached = self._answered = False
        super().__init__("longstride-chat-api", self._http.aclose)

    def ask(
        self,
        messages: list[dict[str, Any]],
        most: int,
        seed: int,
        temperature: float,
        top_p: float,
        tools: list[dict[str, Any]],
        **more: Any,
    ) -> "Future[Said]":
        """What the model says next.

        Args:
            messages: of the conversation, as the API takes them.
            most: tokens that may be sampled.
            seed: of the sampling.
            temperature: 0 is greedy.
            top_p: nucleus.
            tools: functions that may be called.
            **more: fields of the request.

        Raises (the future):
            ContextFull: the prompt has no room.
            EngineFailure: this request was not answered.
            ConfigError: nor would any other be.
        """
        body = {"model": self.api.name, "messages": messages, "temperature": temperature, "top_p": top_p} | more
        body |= {self.api.limit_key: most} | ({"tools": tools} if tools else {})
        body |= ({"seed": seed % 2**31} if self.api.seeded else {}) | self.api.body
        # a token is seldom more than some twenty characters, of six bytes where they are escaped, once as thought
        return self.start(self._ask(body, (1 << 18) + (1 << 8) * most, seed))

    async def _ask(self, body: dict[str, Any], largest: int, seed: int) -> Said:
        import httpx2

        api, url, tries = self.api, f"{self.api.url}/chat/completions", 0

        async def send() -> HTTPResponse:
            nonlocal tries
            tries += 1
            try:
                came = await http.post(self._http, url, body, api.timeout, largest)
            except (TimeoutError, httpx2.TransportError) as e:
                if not self._reached and tries > UNREACHED_RETRIES:
                    raise self._refusal(self._unanswered(e)) from None
                raise
            self._reached = True
            if came.status == 429 and _SPENT.search(came.text):  # waiting does not help
                raise self._refusal(f"status 429 with {self._start(came)}")
            if _no_room(came):
                raise ContextFull
            return came

        async with self._places:
            came = await http.retry(send, api.retries, stream(seed, "chat-api", url))
        if not isinstance(came, HTTPResponse):
            raise self._failure(self._unanswered(came))
        if came.body is None:
            raise self._failure(f"a response of more than {largest} bytes")
        if came.status == 200:
            said = self._read(came)
            self._answered = True
            return said
        trouble = f"status {came.status} with {self._start(came)}"
        if came.is_busy:
            raise self._failure(f"{trouble}, also after {api.retries} retries; see model.concurrency and model.retries")
        if came.status in (401, 402, 403, 404):
            raise self._refusal(f"{trouble}; look at model.url, model.name and model.key_env")
        raise self._failure(f"{trouble}; model.limit_key, model.seeded and model.body change what is sent")

    def _read(self, came: HTTPResponse) -> Said:
        def hidden(said: Any) -> str:  # once more: it may have stood there in JSON's escapes
            return without_key(said, self._key) if isinstance(said, str) else ""

        try:
            found = _Response.model_validate(read_json(without_key(came.text, self._key)))
        except (UnreadableError, ValidationError) as e:
            why = e.errors(include_url=False)[0]["msg"] if isinstance(e, ValidationError) else f"it {e}"
            raise self._failure(f"expected choices[0].message in JSON ({why}), got {self._start(came)}") from None
        message, content = found.message, found.message.content
        return Said(
            hidden(content if not isinstance(content, list) else "".join(part.text for part in content)),
            hidden(message.reasoning_content or message.reasoning),
            tuple((hidden(f.name), _arguments(f.arguments, hidden)) for f in message.functions),
            "length" if found.finish == "length" else "stop",
            self._usage(found.usage),
        )

    def _usage(self, said: Any) -> Usage | None:
        usage = usage_in(said)
        return usage and usage._replace(cost=self.api.cost(usage.read, usage.cached, usage.sampled))

    def _start(self, came: HTTPResponse) -> str:
        """How an answer begins: hidden first, for part of a key is not known again."""
        return short(without_key(came.text, self._key), 300)

    def _unanswered(self, e: Exception) -> str:
        nothing = f"nothing whole came within {self.api.timeout:g} s"
        trouble = nothing if isinstance(e, TimeoutError) else str(e) or type(e).__name__
        return f"{trouble}; is the server there, and model.url right?"

    def _failure(self, trouble: str) -> EngineFailure | ConfigError:
        """Of this request; of all where nothing was answered before."""
        return EngineFailure(self._named(trouble)) if self._answered else self._refusal(trouble)

    def _refusal(self, trouble: str) -> ConfigError:
        return ConfigError(self._named(trouble))

    def _named(self, trouble: str) -> str:
        return without_key(f"{self.api}: {trouble}", self._key)


def _no_room(came: HTTPResponse) -> bool:
    """Whether an answer says that the prompt has no room: by its status, by the code or type of its error, or in words.
    Some say it with status 500, where words alone are not believed."""
    if came.status not in (400, 413, 422, 500):
        return False
    said = json_object(came.text)
    error = said["error"] if isinstance(said.get("error"), dict) else said
    coded = not FULL.isdisjoint(str(error.get(key)) for key in ("code", "type"))
    return coded or came.status == 413 or (came.status != 500 and bool(_TOO_LONG.search(came.text)))


def usage_in(said: Any) -> Usage | None:
    """What the `usage` of one answer says, without a cost; None where the server does not count."""
    read, sampled = _count(said, "prompt_tokens"), _count(said, "completion_tokens")
    if read is None or sampled is None:
        return None
    return Usage(1, read, min(read, _count(said, "prompt_tokens_details", "cached_tokens") or 0), sampled)


def _count(said: Any, *path: str) -> int | None:
    """A number of tokens, under the keys of `path`; None where there is none that can be."""
    for key in path:
        said = said.get(key) if isinstance(said, dict) else None
    return said if type(said) is int and 0 <= said <= MOST_TOKENS else None


def _arguments(said: str | dict[str, Any], hidden: Callable[[str], str]) -> str | dict[str, Any]:
    """The arguments of a call, which the protocol has as JSON in a text."""
    if isinstance(said, dict):
        return said
    try:
        found = read_json(hidden(said) or "{}")
    except UnreadableError:
        return hidden(said)
    return found if isinstance(found, dict) else hidden(said)

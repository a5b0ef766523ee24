"""A judge: a language model behind an OpenAI-compatible address (`POST URL/chat/completions`), asked one prompt at a
time.

What always holds: anything that goes wrong is a `JudgeFailure` and never a reply; a question does not block the event
loop, and ends at once when it is cancelled; the key is read from the environment when it is needed and is taken out of
everything that is kept, logged or raised; what a server sends is untrusted: it is bounded and parsed, and no more. A
prompt whose reply is in the cache is not sent again, and of equal prompts asked at once only one is sent.

What it does not do: interpret a reply (`web.judging.rubric` does), stream, or follow redirects.
"""

import asyncio
import functools
import hashlib
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from weakref import WeakValueDictionary

from pydantic import Field

from longstride.core import http
from longstride.core.address import Address
from longstride.core.component import Component
from longstride.core.errors import ConfigError, JudgeFailure
from longstride.core.foreign import UnreadableError, read_json
from longstride.core.http import HTTPResponse, key_in, without_key
from longstride.core.numbers import Count, CountOrZero, Seconds, Weight
from longstride.core.seeds import stream
from longstride.core.trajectory import Usage
from longstride.models.api import usage_in

if TYPE_CHECKING:
    import httpx2

LARGEST_REPLY = 1 << 18
"""Bytes of a response; a thousand tokens of reply are some five thousand."""

_log = logging.getLogger(__name__)


class OpenAIJudge(Component):
    """A language model that is asked over HTTP (vLLM, SGLang, llama.cpp, `transformers serve`, hosted models)."""

    url: Address
    """Where the server's interface begins: `http://127.0.0.1:8000/v1`."""
    model: Annotated[str, Field(min_length=1)]
    """The model's name, as the server knows it."""
    key_env: str | None = None
    """Name of the environment variable that holds the key; a server of one's own mostly needs none."""
    timeout: Seconds = 30.0
    """Seconds for one request, from connecting to the last byte."""
    retries: CountOrZero = 3
    """How often a request is sent again that was not answered, or was answered by status 429 or 5xx."""
    max_tokens: Count = 1024
    """Tokens of a reply, its reasons included."""
    temperature: Weight = 0.0
    """0 is greedy: the same question gets the same verdict, as far as the server is deterministic."""
    concurrency: Count = 8
    """Requests that are under way at once."""
    cache: str | None = None
    """File of replies, a JSON line each (`key`, `reply`); made when it is not there."""
    transcript: str | None = None
    """File to which every request and what came of it is added, a JSON line each (`request`, `seconds`, and `status`
    and `response`, or `error`)."""

    async def ask(
        self, prompt: str, seed: int, vote: int = 0, count: Callable[[Usage], object] = lambda usage: None
    ) -> str:
        """The model's reply to a prompt.

        Args:
            prompt: the question, sent as one message of the user (not every chat template has a system role).
            seed: of the jitter between retries; the reply does not depend on it.
            vote: which of several replies to the same prompt; the server samples by it where the temperature is not 0.
            count: is told what each answer of the server took, reply or not; a reply from the cache takes nothing.

        Raises:
            JudgeFailure: no reply after all retries, a status that is none to retry, or a response that is no reply.
            ConfigError: the key is not set, or the cache or transcript cannot be read or written.
        """
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }
        if self.temperature:
            body["seed"] = vote
        key = hashlib.sha256(json.dumps([self.url, vote, body]).encode()).hexdigest()
        if self.cache is None:
            return await self._request(body, seed, key, count)
        replies = _replies(self.cache)
        async with _traffic().asking.setdefault(key, asyncio.Lock()):
            if key not in replies:
                reply = await self._request(body, seed, key, count)
                _append(self.cache, {"key": key, "reply": reply})
                replies[key] = reply
        return replies[key]

    async def _request(self, body: dict[str, Any], seed: int, key: str, count: Callable[[Usage], object]) -> str:
        """Sends until there is a reply."""
        places = _traffic().places.setdefault(self, asyncio.Semaphore(self.concurrency))
        async with http.client(self._key()) as client:

            async def send() -> HTTPResponse:
                async with places:
                    return await self._send(client, body)

            came = await http.retry(send, self.retries, stream(seed, "judge", key))
        if isinstance(came, HTTPResponse) and not came.is_busy:
            return self._reply(came, count)
        if isinstance(came, HTTPResponse):
            trouble = f"status {came.status}"
        elif isinstance(came, TimeoutError):
            trouble = f"nothing came within {self.timeout:g} s"
        else:
            trouble = self._hide(str(came) or type(came).__name__)
        sent = self.retries + 1
        raise self._failure(f"{trouble} (request {sent} of {sent}); look after the server, or raise timeout or retries")

    async def _send(self, client: "httpx2.AsyncClient", body: dict[str, Any]) -> HTTPResponse:
        """One request. What came of it is put into the transcript, even where the request is cancelled."""
        line: dict[str, Any] = {"request": body, "error": "cancelled"}
        began = time.monotonic()
        try:
            answer = await http.post(client, f"{self.url}/chat/completions", body, self.timeout, LARGEST_REPLY)
            text = self._hide(answer.text) if answer.body is not None else None
            line = {"request": body, "status": answer.status, "response": text}
            return answer
        except Exception as e:
            line["error"] = self._hide(str(e) or type(e).__name__)
            raise
        finally:
            if self.transcript is not None:
                _append(self.transcript, line | {"seconds": round(time.monotonic() - began, 3)})

    def _reply(self, answer: HTTPResponse, count: Callable[[Usage], object] = lambda usage: None) -> str:
        if answer.body is None:
            trouble = f"a response of more than {LARGEST_REPLY} bytes with status {answer.status}"
            raise self._failure(f"{trouble}; look at url")
        text = self._hide(answer.text)
        start = repr(text[:200])
        if answer.status != 200:
            raise self._failure(f"status {answer.status} with {start}; look at url, model and key_env")
        media = answer.headers.get("content-type", "nothing").partition(";")[0].strip().lower()
        if media != "application/json":
            raise self._failure(f"expected application/json, got {media[:60]!r} with {start}; look at url")
        try:
            said = read_json(text)
            count(usage_in(said.get("usage")) or Usage(1))
            reply = said["choices"][0]["message"]["content"]
        except (UnreadableError, LookupError, TypeError, AttributeError):
            raise self._failure(f"expected choices[0].message.content in JSON, got {start}; look at url") from None
        if not isinstance(reply, str) or not reply.strip():
            raise self._failure(f"no text in the reply {start}; a model that thinks first needs more max_tokens")
        return self._hide(reply)  # once more: the text may have it in JSON's escapes

    def _key(self) -> str:
        return key_in(self.key_env, "judge.key_env")

    def _hide(self, text: str) -> str:
        return without_key(text, self._key())

    def _failure(self, trouble: str) -> JudgeFailure:
        return JudgeFailure(f"the judge {self.model!r} at {self.url}: {trouble}")


class _Traffic:
    """What the questions of one event loop share: locks belong to a loop, judges and caches do not."""

    def __init__(self) -> None:
        self.places: dict[OpenAIJudge, asyncio.Semaphore] = {}
        self.asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()


_by_loop: dict[asyncio.AbstractEventLoop, _Traffic] = {}


def _traffic() -> _Traffic:
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        for old in [known for known in _by_loop if known.is_closed()]:
            del _by_loop[old]
        _by_loop[loop] = _Traffic()
    return _by_loop[loop]


@functools.cache
def _replies(path: str) -> dict[str, str]:
    """The replies in a cache file, read once in a process."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as e:
        raise ConfigError(f"judge.cache: cannot read {path} ({e.strerror or e}); name another file") from e
    replies = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line:
            continue
        try:
            entry = json.loads(line)
            if not isinstance(entry["key"], str) or not isinstance(entry["reply"], str):
                raise TypeError
            replies[entry["key"]] = entry["reply"]
        except (ValueError, LookupError, TypeError, RecursionError):
            _log.warning("%s, line %d: not a judge's reply; skipped, the question is asked again", path, number)
    if data and not data.endswith(b"\n"):  # its writer was killed: what is added must not stand in the same line
        _append(path)
    return replies


def _append(path: str, entry: dict[str, Any] | None = None) -> None:
    """Adds a line, an empty one without an entry; in one write, so that two processes may share the file."""
    text = json.dumps(entry) if entry else ""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a", encoding="utf-8") as file:
            file.write(text + "\n")
    except OSError as e:
        raise ConfigError(f"judge: cannot write {path} ({e.strerror or e}); name another file") from e

"""A judge: a language model behind an OpenAI-compatible address (`POST URL/chat/completions`), asked one prompt at a
time.

What always holds: whatever goes wrong is a `JudgeFailure` and never a reply; a question waits without holding up the
event loop, and gives up at once when it is cancelled; the key is read from the environment when it is needed and is
taken out of everything that is kept, logged or raised; what a server sends is untrusted: bounded, parsed, and no more.
A prompt whose reply is in the cache is not sent again, and of equal prompts asked at once only one is sent.

What it does not do: understand a reply (`web.judging.rubric` does), stream, or follow redirects, which could carry the key
elsewhere.
"""

import asyncio
import functools
import hashlib
import json
import logging
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Annotated, Any
from weakref import WeakValueDictionary

from pydantic import Field

from longstride.core.component import Component
from longstride.core.errors import ConfigError, JudgeFailure
from longstride.core.http import Address, key_in, tls
from longstride.core.seeds import stream

FIRST_WAIT = 1.0
"""Seconds before the first retry; each further one waits twice as long."""
LONGEST_WAIT = 20.0
"""Seconds that a retry waits at most, whatever a server asks for."""
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
    timeout: Annotated[float, Field(gt=0)] = 30.0
    """Seconds for one request, from connecting to the last byte."""
    retries: Annotated[int, Field(ge=0)] = 3
    """How often a request is sent again that was not answered, or was answered by status 429 or 5xx."""
    max_tokens: Annotated[int, Field(ge=1)] = 1024
    """Tokens of a reply, its reasons included."""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    """0 is greedy: the same question gets the same verdict, as far as the server is deterministic."""
    concurrency: Annotated[int, Field(ge=1)] = 8
    """Requests that are under way at once."""
    cache: str | None = None
    """File of replies, a JSON line each (`key`, `reply`); made when it is not there."""
    transcript: str | None = None
    """File to which every request and what came of it is added, a JSON line each (`request`, `seconds`, and `status`
    and `response`, or `error`)."""

    async def ask(self, prompt: str, seed: int, vote: int = 0) -> str:
        """The model's reply to a prompt.

        Args:
            prompt: the whole question, sent as one message of the user (not every chat template has a system role).
            seed: of the jitter between retries; the reply does not depend on it.
            vote: which of several replies to the same prompt; the server samples by it where the temperature is not 0.

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
            return await self._request(body, seed, key)
        replies = _replies(self.cache)
        async with _traffic().asking.setdefault(key, asyncio.Lock()):
            if key not in replies:
                reply = await self._request(body, seed, key)
                _append(self.cache, {"key": key, "reply": reply})
                replies[key] = reply
        return replies[key]

    async def _request(self, body: dict[str, Any], seed: int, key: str) -> str:
        """Sends until there is a reply. Waits are halved at random, by the seed, so that those who failed together do
        not come again together."""
        import httpx2

        jitter = stream(seed, "judge", key)
        places = _traffic().places.setdefault(self, asyncio.Semaphore(self.concurrency))
        async with httpx2.AsyncClient(verify=tls(), timeout=None, headers=self._headers()) as client:
            for attempt in range(self.retries + 1):
                wait = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * (0.5 + jitter.random() / 2)
                try:
                    async with places:
                        status, headers, text = await self._send(client, body)
                except TimeoutError:
                    trouble = f"nothing came within {self.timeout:g} s"
                except httpx2.TransportError as e:
                    trouble = self._hide(str(e) or type(e).__name__)
                else:
                    if status != 429 and status < 500:
                        return self._reply(status, headers, text)
                    trouble = f"status {status}"
                    wait = _retry_after(headers) or wait
                if attempt < self.retries:
                    await asyncio.sleep(wait)
        sent = self.retries + 1
        raise self._failure(f"{trouble} (request {sent} of {sent}); look after the server, or raise timeout or retries")

    async def _send(self, client: Any, body: dict[str, Any]) -> tuple[int, Mapping[str, str], str | None]:
        """One request: status, headers and text, None where that is larger than `LARGEST_REPLY`. What came of it is
        put into the transcript, even where the request is cancelled."""
        line: dict[str, Any] = {"request": body, "error": "cancelled"}
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.timeout):
                # encoded here: ASCII carries the lone surrogates that a page may hold
                request = client.stream("POST", f"{self.url}/chat/completions", content=json.dumps(body).encode())
                async with request as response:
                    data = bytearray()
                    async for chunk in response.aiter_raw(4096):
                        data += chunk
                        if len(data) > LARGEST_REPLY:
                            break
            text = self._hide(data.decode(errors="replace")) if len(data) <= LARGEST_REPLY else None
            line = {"request": body, "status": response.status_code, "response": text}
            return response.status_code, response.headers, text
        except Exception as e:
            line["error"] = self._hide(str(e) or type(e).__name__)
            raise
        finally:
            if self.transcript is not None:
                _append(self.transcript, line | {"seconds": round(time.monotonic() - began, 3)})

    def _reply(self, status: int, headers: Mapping[str, str], text: str | None) -> str:
        if text is None:
            raise self._failure(f"a response of more than {LARGEST_REPLY} bytes with status {status}; look at url")
        start = repr(text[:200])
        if status != 200:
            raise self._failure(f"status {status} with {start}; look at url, model and key_env")
        media = headers.get("content-type", "nothing").partition(";")[0].strip().lower()
        if media != "application/json":
            raise self._failure(f"expected application/json, got {media[:60]!r} with {start}; look at url")
        try:
            reply = json.loads(text)["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise self._failure(f"expected choices[0].message.content in JSON, got {start}; look at url") from None
        if not isinstance(reply, str) or not reply.strip():
            raise self._failure(f"no text in the reply {start}; a model that thinks first needs more max_tokens")
        return self._hide(reply)  # once more: the text may have it in JSON's escapes

    def _key(self) -> str:
        return key_in(self.key_env, "judge.key_env")

    def _headers(self) -> dict[str, str]:
        key = self._key()
        fixed = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        return fixed | ({"Authorization": f"Bearer {key}"} if key else {})

    def _hide(self, text: str) -> str:
        """The text without the key: servers like to say which key they refuse."""
        key = self._key()
        return text.replace(key, "[key]") if key else text

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


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait (RFC 9110, section 10.2.3: a number or a date), at most `LONGEST_WAIT`."""
    text = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}", text):
        seconds = float(text)
    else:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_WAIT)

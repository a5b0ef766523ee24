"""What the clients of servers share: keys, certificates, one request, when it is sent again, and web sockets.

What always holds: a request is sent again only where there was no answer, or one of status 429 or 5xx; an answer, and a
message of a web socket, is read up to a number of bytes and no further; redirects, which could carry a key elsewhere or
have this machine ask others, are not followed.
"""

import asyncio
import functools
import itertools
import json
import os
import random
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from longstride.core.errors import ConfigError, require

if TYPE_CHECKING:
    import httpx2

FIRST_WAIT = 1.0
"""Seconds before a request is sent again for the first time; each further wait is twice as long."""
LONGEST_WAIT = 20.0
"""Seconds that a wait takes at most, whatever a server asks for."""


def key_in(variable: str | None, where: str) -> str:
    """The key that an environment variable holds; empty where none is named.

    Raises:
        ConfigError: it holds none; `where` is the setting that names the variable.
    """
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    # the library's complaint about a header that cannot be sent would show the key
    if not re.fullmatch("[!-~]+", key):
        came = "something that cannot be sent" if key else "nothing"
        raise ConfigError(
            f"{where}: the environment variable {variable!r} holds {came}; expected a key of ASCII characters "
            "without spaces: set it, or leave key_env out for a server that needs none"
        )
    return key


@functools.cache
def tls() -> ssl.SSLContext:
    """Made once: it takes longer than a request to a near server."""
    import httpx2

    return httpx2.create_ssl_context()


class HTTPResponse(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes | None
    """None where it is larger than was to be read."""

    @property
    def text(self) -> str:
        """The body as UTF-8, what is not UTF-8 replaced; empty where it is too large."""
        return (self.body or b"").decode(errors="replace")

    @property
    def is_busy(self) -> bool:
        """Whether the server may answer later what it does not answer now."""
        return self.status == 429 or self.status >= 500


def client(key: str, **settings: Any) -> "httpx2.AsyncClient":
    """A client for JSON, with the key if there is one; `settings` are those of `httpx2.AsyncClient`."""
    import httpx2

    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return httpx2.AsyncClient(verify=tls(), timeout=None, headers=headers, **settings)


async def post(
    client: "httpx2.AsyncClient",
    url: str,
    body: Mapping[str, Any] | None,
    seconds: float,
    largest: int,
    method: Literal["GET", "POST"] = "POST",
) -> HTTPResponse:
    """Sends one request.

    Args:
        client: sends it.
        url: where to.
        body: sent as JSON of ASCII characters, which has a form for lone surrogates; None for no body.
        seconds: from connecting to the last byte.
        largest: bytes of the answer's body that are read at most.
        method: of the request.

    Raises:
        TimeoutError: there was no complete answer in time.
        httpx2.TransportError: the connection failed.
    """
    content, data = None if body is None else json.dumps(body).encode(), bytearray()
    async with asyncio.timeout(seconds), client.stream(method, url, content=content) as response:
        async for chunk in response.aiter_raw(1 << 16):
            data += chunk
            if len(data) > largest:
                return HTTPResponse(response.status_code, response.headers, None)
        return HTTPResponse(response.status_code, response.headers, bytes(data))


async def connect(address: str, path: str, seconds: float, largest: int) -> Any:
    """A connection over a web socket, of the library `websockets`.

    Args:
        address: of the server, `http` or `https`.
        path: of the socket there.
        seconds: for connecting.
        largest: bytes of one message of the server at most.

    Raises:
        TimeoutError, OSError, websockets.WebSocketException: there is none; a redirect is an answer like any other.
        MissingExtra: `websockets` is not installed.
    """
    base = require("websockets.asyncio.client", "openenv").connect

    class Unredirected(base):
        def process_redirect(self, exc: Exception) -> Exception:
            return exc

    url = f"ws{address.removeprefix('http')}{path}"
    return await Unredirected(
        url, max_size=largest, compression=None, open_timeout=seconds, close_timeout=1.0, proxy=None
    )


async def retry(
    send: Callable[[], Awaitable[HTTPResponse]], retries: int, jitter: random.Random
) -> HTTPResponse | Exception:
    """Sends until a server that is not busy answers.

    Args:
        send: sends the request once; see `post` for what it raises.
        retries: how often it is sent again at most.
        jitter: shortens each wait by up to a half, so that requests that failed together do not come back together.

    Returns:
        The answer, or what came of the last try: the answer of a busy server, or why there was none.
    """
    import httpx2

    for attempt in itertools.count():
        try:
            came = await send()
        except (TimeoutError, httpx2.TransportError) as e:
            came = e
        if attempt == retries or (isinstance(came, HTTPResponse) and not came.is_busy):
            return came
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * (0.5 + jitter.random() / 2)
        asked = _wait_asked_for(came.headers) if isinstance(came, HTTPResponse) else None
        await asyncio.sleep(asked or wait)
    raise AssertionError("unreachable")


def without_key(text: str, key: str) -> str:
    """The text with the key taken out: servers like to say which key they refuse."""
    return text.replace(key, "[key]") if key else text


def _wait_asked_for(headers: Mapping[str, str]) -> float | None:
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

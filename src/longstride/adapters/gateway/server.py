"""The server that programs ask: one for all episodes of this process, on loopback.

What always holds: an episode is known by its key alone, which nobody else has; a request that does not fit, or comes
with another key, is refused and reaches no episode; requests of one episode are answered one after the other, in the
order in which they came; an episode that is over refuses, and nothing waits for ever.
"""

import asyncio
import functools
import json
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from longstride.adapters.gateway.wire import FORMS, MODEL, RefusedRequest, WireAnswer, WireForm, WireRequest, wrong
from longstride.core.errors import ConfigError, EnvFailure, RunError, short
from longstride.core.foreign import UnreadableError, read_json

MAX_BODY = 4 << 20
"""Bytes of a request."""
MAX_WAITING = 64
"""Requests of one episode that wait at once."""
MAX_REFUSED = 100
"""Requests that do not fit, of one episode: after so many of them it failed."""
MAX_RESPONSES = 1000
"""Responses of an episode that may be gone on from by their id."""
KEYS = 10_000
"""Keys of episodes that are over that are still known as such."""
STARTING = 30.0
"""Seconds that the server has for its start."""
END = "/v1/episode/end"
"""Where a program that nobody here started ends its episode, with a result as its body."""
ENDED = RefusedRequest(410, "episode_over", "this key's episode is over")
BUDGET = RefusedRequest(429, "budget_exhausted", "the budget of this episode is spent; nothing more is answered")
Waiting = tuple[WireRequest, "Future[WireAnswer | RefusedRequest]"]
"""A request, and where its answer goes."""


class EpisodeLine:
    """One episode's end of the server. Made in the event loop that plays the episode."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._loop, self._inbox = asyncio.get_running_loop(), asyncio.Queue[Waiting | EnvFailure]()
        self._over: RefusedRequest | None = None
        self._open: list[Future[WireAnswer | RefusedRequest]] = []
        self._lock = threading.Lock()
        self._refused = 0
        self.reported: asyncio.Future[Any] = self._loop.create_future()
        """What a program that nobody here started says of its episode, when it ends it."""
        self._rested = time.monotonic()

    async def asked(self) -> Waiting:
        """The next request. Raises: EnvFailure where the program does not keep to the protocol."""
        came = await self._inbox.get()
        if isinstance(came, EnvFailure):
            raise came
        return came

    def end(self, refusal: RefusedRequest) -> None:
        """Refuses whatever waits, and whatever comes."""
        with self._lock:
            self._over = refusal
            waiting, self._open = self._open, []
        for future in waiting:
            if not future.done():
                future.set_result(refusal)

    # what follows is called by the server's thread

    def put(self, asked: WireRequest) -> "Future[WireAnswer | RefusedRequest]":
        """Takes a request in."""
        future: Future[WireAnswer | RefusedRequest] = Future()
        future.add_done_callback(self._rests)
        with self._lock:
            self._open = [f for f in self._open if not f.done()]
            if self._over is not None:
                future.set_result(self._over)
            elif len(self._open) >= MAX_WAITING:
                future.set_result(wrong(f"{MAX_WAITING} requests of this episode wait already; ask fewer at once"))
            else:
                self._open.append(future)
                self._tell((asked, future))
        return future

    def refused(self, why: RefusedRequest) -> None:
        """Counts a request that did not fit."""
        self._refused += 1
        if self._refused == MAX_REFUSED:
            self._tell(EnvFailure(f"the program sent {MAX_REFUSED} requests that do not fit, the last: {why.message}"))

    @property
    def silence(self) -> float:
        """Seconds since its last answer; 0 while it waits for one."""
        with self._lock:
            return 0.0 if any(not future.done() for future in self._open) else time.monotonic() - self._rested

    def _rests(self, answered: Any) -> None:
        self._rested = time.monotonic()

    def report(self, result: Any) -> None:
        """Takes what the program says at its end."""

        def settle() -> None:
            if not self.reported.done():
                self.reported.set_result(result)

        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(settle)

    def _tell(self, what: "Waiting | EnvFailure") -> None:
        with suppress(RuntimeError):  # the loop is closed: the pool has gone
            self._loop.call_soon_threadsafe(self._inbox.put_nowait, what)


class Server:
    """Listens on a free port, in a thread of its own, as long as the process lives.

    Raises:
        RunError: it does not start.
    """

    def __init__(self, port: int = 0) -> None:
        self._lines: dict[str, EpisodeLine] = {}
        self._waiting: deque[EpisodeLine] = deque()
        """Lines that go to whoever comes with a new key."""
        self._ended: dict[str, None] = {}
        """Keys of episodes that are over, the newest last."""
        self._listener = socket.create_server(("127.0.0.1", port), backlog=1024)
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        routes = [Route(path, functools.partial(self._answer, form), methods=["POST"]) for path, form in FORMS.items()]
        ending = Route(END, self._end, methods=["POST"])
        app = Starlette(routes=[*routes, ending, Route("/v1/models", self._models)])
        config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off", timeout_keep_alive=60)
        self._server = _Quiet(config)
        threading.Thread(target=self._run, name="gateway", daemon=True).start()
        if not self._server.ready.wait(STARTING):
            raise RunError(f"the gateway did not start within {STARTING:g} s")

    def open(self) -> EpisodeLine:
        """A line for an episode that begins."""
        line = EpisodeLine(f"ls-{secrets.token_hex(16)}")
        self._lines[line.key] = line
        return line

    def await_stranger(self, key: str) -> EpisodeLine:
        """Has an episode wait for a program that nobody here starts: its line goes to the next one that comes with a
        key that is not known."""
        line = self._lines.pop(key)
        self._waiting.append(line)
        return line

    def close(self, line: EpisodeLine) -> None:
        """Ends an episode's line."""
        line.end(ENDED)
        with suppress(ValueError):
            self._waiting.remove(line)
        self._lines.pop(line.key, None)
        self._ended[line.key] = None
        if len(self._ended) > KEYS:
            del self._ended[next(iter(self._ended))]

    def _run(self) -> None:
        self._server.run(sockets=[self._listener])

    def _line(self, request: Request) -> EpisodeLine:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        key = request.headers.get("x-api-key", "") or bearer
        if key in self._lines:
            return self._lines[key]
        if key in self._ended:
            raise ENDED.with_traceback(None)
        if key and self._waiting:
            line = self._lines[key] = self._waiting.popleft()
            line.key = key
            return line
        raise RefusedRequest(
            401,
            "authentication_error",
            "this is no episode's key, and no episode waits for a new one; send the one that the program was given",
        )

    async def _answer(self, form: WireForm, request: Request) -> Response:
        line = None
        try:
            line = self._line(request)
            asked = form.read(await _body(request))
            came = await asyncio.wrap_future(line.put(asked))
            if isinstance(came, RefusedRequest):
                raise came.with_traceback(None)  # one object is raised for many requests
        except RefusedRequest as e:
            if line is not None and e.status in (400, 413):
                line.refused(e)
            # clients send again what was refused with some of these, unless they are told not to
            return JSONResponse(form.refusal(e), e.status, {"x-should-retry": "false"})
        if not asked.stream:
            return JSONResponse(form.answer(came, asked))
        return StreamingResponse(_events(form, came, asked), media_type="text/event-stream")

    async def _end(self, request: Request) -> Response:
        try:
            self._line(request).report(await _body(request))
        except RefusedRequest as e:
            return JSONResponse({"error": {"message": e.message, "type": e.kind}}, e.status)
        return JSONResponse({"ended": True})

    async def _models(self, request: Request) -> Response:
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "longstride"}
        return JSONResponse({"object": "list", "data": [model]})


class _Quiet(uvicorn.Server):
    """A server in a thread, which says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


_servers: dict[str, Server] = {}
"""By address."""


def server_at(address: str) -> Server:
    """The server that listens there."""
    return _servers[address]


@functools.cache
def server(port: int) -> Server:
    """The server of this process on a port; 0 is a free one, always the same.

    Raises:
        ConfigError: it cannot listen there.
    """
    try:
        made = Server(port)
    except (OSError, OverflowError) as e:
        raise ConfigError(f"cannot listen on 127.0.0.1:{port} ({e}); choose another port, or 0 for a free one") from e
    _servers[made.address] = made
    return made


async def _body(request: Request) -> dict[str, Any]:
    data = b""
    try:
        async for piece in request.stream():
            data += piece
            if len(data) > MAX_BODY:
                raise RefusedRequest(413, "request_too_large", f"a request has at most {MAX_BODY} bytes")
    except ClientDisconnect:
        raise wrong("the request is not whole") from None
    try:
        found = read_json(data)
    except UnreadableError as e:
        raise wrong(f"the request {e}") from None
    if not isinstance(found, dict):
        raise wrong(f"expected a JSON object, got {short(found)}")
    return found


async def _events(form: WireForm, answer: WireAnswer, asked: WireRequest) -> AsyncIterator[str]:
    for name, data in form.stream(answer, asked):
        text = data if isinstance(data, str) else json.dumps(data)
        yield (f"event: {name}\n" if name else "") + f"data: {text}\n\n"

"""The only way out of the browser: a proxy on loopback that answers for the hosts of its table and for no other.

Chromium is told to send every request of a context here (pages, scripts, fetch, WebSocket, service workers, downloads),
save those to hosts that a task allows on the real network. What always holds: a host that is not in the table is never
contacted, whatever a page or a redirect asks for; a refused page load is answered 204, which leaves the browser where
it was; a tunnel (https, WebSocket) is refused with 403. Applications are called in process.
"""

import asyncio
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

import uvicorn

from longstride.envs.sites.browser import Application, Message


class Gateway:
    """Serves `apps` (application by host name) to browsers that use `address` as their HTTP proxy."""

    def __init__(self, apps: Mapping[str, Application]) -> None:
        self.apps = dict(apps)
        self.refused: list[str] = []
        """Hosts that were asked for in vain, the newest 100."""
        self._server: uvicorn.Server | None = None
        self._running: asyncio.Task[None] | None = None
        self.address = ""

    async def open(self) -> None:
        """Listens on a free port of the loopback interface."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        config = uvicorn.Config(
            self._answer, log_level="critical", lifespan="off", interface="asgi3", http="h11", ws="none"
        )
        self._server = uvicorn.Server(config)
        self._running = asyncio.ensure_future(self._server.serve(sockets=[listener]))
        while not self._server.started:  # serve() says so by nothing else
            if self._running.done():
                await self._running
            await asyncio.sleep(0.001)
        self.address = f"http://127.0.0.1:{listener.getsockname()[1]}"

    async def close(self) -> None:
        """Stops listening; open connections are cut."""
        if self._server is not None and self._running is not None:
            self._server.should_exit = self._server.force_exit = True
            await self._running

    async def _answer(self, scope: Message, receive: Any, send: Any) -> None:
        host, path = _target(scope)
        if (app := self.apps.get(host)) is not None and scope["method"] != "CONNECT":
            headers = [(k, v) for k, v in scope["headers"] if k != b"host" and not k.startswith(b"proxy-")]
            named = {"headers": [*headers, (b"host", host.encode())], "server": (host, 80)}
            await app({**scope, **named, "path": unquote(path), "raw_path": path.encode()}, receive, send)
            return
        self.refused = [*self.refused[-99:], host]
        page = dict(scope["headers"]).get(b"sec-fetch-dest") == b"document"
        status = 204 if page and scope["method"] != "CONNECT" else 403
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


def _target(scope: Message) -> tuple[str, str]:
    """Host (with its port, if one was given) and path of a request in a proxy's form: `GET http://host/path`."""
    full = scope["raw_path"].decode("latin-1")
    try:
        parts = urlsplit(full)
    except ValueError:
        return full, "/"
    if parts.scheme == "http":
        return parts.netloc.lower(), parts.path or "/"
    return full.lower(), "/"

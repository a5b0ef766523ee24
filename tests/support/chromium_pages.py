"""Pages that Chromium is shown, walks on them, and its processes."""

import asyncio
import os
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from longstride.core.task import Task
from longstride.web.chromium.env import ChromiumEnv
from longstride.web.chromium.reach import Reach

START = Task(id="t", source="x", goal="look", start="/")


def app_of(pages: dict[str, Any]) -> Reach:
    """What reaches only an application with these pages at `app.test`."""

    def endpoint(page: Any) -> Any:
        async def answer(request: Request) -> Response:
            return page if isinstance(page, Response) else HTMLResponse(page)

        return answer

    routes = [Route(path, endpoint(page), methods=["GET", "POST"]) for path, page in pages.items()]
    return Reach({"app.test": Starlette(routes=routes)})


def env_of(html: str, **pages: Any) -> ChromiumEnv:
    """An environment that begins on this page; other pages by their path."""
    return ChromiumEnv(app_of({"/": html} | {f"/{k}": v for k, v in pages.items()}), "http://app.test")


async def walk(env: ChromiumEnv, *said: str, refused: list[str] | None = None) -> list[str]:
    """The observations of an episode; the sites that its pages asked for in vain are put into `refused`."""
    try:
        seen = [(await env.reset(START, 0)).text]
        for text in said:
            seen.append((await env.step(f"Action: {text}")).observation.text)
        if refused is not None:
            refused += env.browser.lease.gateway.refused
        return seen
    finally:
        await env.close()


class Listener:
    """A server outside of what a task allows; counts what comes."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        self.calls: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: 7\r\n\r\noutside"
        with connection:
            if said := connection.recv(1000):
                self.calls.append(said)
                connection.sendall(head)


async def crash(cdp: Any) -> None:
    """Ends the process of a tab."""
    crashing = asyncio.ensure_future(cdp.send("Page.crash"))
    await asyncio.wait([crashing], timeout=2)
    crashing.add_done_callback(lambda c: c.cancelled() or c.exception())  # looked at


def browser_pid() -> int:
    """The browser's main process: a descendant of this one called chromium whose parent is not."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, rest = stat.read_text().partition("(")[2].rsplit(")", 1)
            parents[int(stat.parent.name)] = (int(rest.split()[1]), name)

    def ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and ours(parents[pid][0]))

    browsers = {p: up for p, (up, name) in parents.items() if name.startswith("chrom") and ours(p)}
    return next(p for p, up in browsers.items() if up not in browsers)

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

from longstride.bench.processes import tree
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


def own_addresses() -> list[str]:
    """Addresses of this machine: on loopback, and on its network where it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # sends nothing
        return list(dict.fromkeys(["127.0.0.1", probe.getsockname()[0]]))
    return ["127.0.0.1"]


class Listener:
    """A server outside of what a task allows, over TCP and UDP; counts what comes."""

    def __init__(self, ip: str = "127.0.0.1") -> None:
        self.socket = socket.create_server((ip, 0))
        self.address = f"{ip}:{self.socket.getsockname()[1]}"
        self.calls: list[bytes] = []
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(self.socket.getsockname())
        threading.Thread(target=self._serve, daemon=True).start()

    def datagrams(self) -> list[bytes]:
        """What has come over UDP since this was asked for before."""
        self.udp.setblocking(False)
        found = []
        with suppress(BlockingIOError):
            while True:
                found.append(self.udp.recv(2000))
        return found

    def close(self) -> None:
        self.socket.close()
        self.udp.close()

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


def udp_ports(root: int) -> set[int]:
    """The local ports of all UDP sockets of a process and of what is below it, from Linux's /proc."""
    own = set()
    for process in tree(root):
        with suppress(OSError):
            own |= {os.readlink(fd) for fd in Path(f"/proc/{process}/fd").iterdir()}
    lines = [line.split() for name in ("udp", "udp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    return {int(fields[1].rpartition(":")[2], 16) for fields in lines if f"socket:[{fields[9]}]" in own}

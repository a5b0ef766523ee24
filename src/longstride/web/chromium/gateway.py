"""The only way out of a browser context: a SOCKS proxy (RFC 1928) on loopback that knows what an episode may contact.

Chromium is made to send everything of a context here (pages, scripts, fetch, WebSocket, downloads), and resolves no
name by itself. What always holds: a site that is not in the episode's `Reach` is never contacted, whatever a page, a
redirect or a name server says; the addresses of a name are resolved once, checked, and used until the gateway is
closed; a page load over http that is refused is answered with status 204, which leaves the browser where it was.
Applications are called in process.
"""

import asyncio
import ipaddress
import socket
from collections import Counter
from typing import Any
from weakref import WeakSet

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from longstride.core.errors import EnvFailure
from longstride.envs.sites.browser import Message
from longstride.web.chromium.reach import Reach

CONNECTING = 10.0
"""Seconds for resolving a name, and for connecting to an address."""
MAX_REFUSED = 1000
"""Different sites that are counted when they are refused."""
GRANTED, NOT_ALLOWED, UNREACHABLE = 0, 2, 4
"""Replies to a request (RFC 1928, section 6)."""


class Gateway:
    """The proxy of one browser context. Everything here runs in one event loop."""

    def __init__(self, reach: Reach) -> None:
        self.reach = reach
        self.refused: Counter[str] = Counter()
        """How often each site was asked for in vain; what is beyond `MAX_REFUSED` sites is counted as `others`."""
        self.address = ""
        self._server: asyncio.Server | None = None
        self._pinned: dict[str, asyncio.Task[list[str]]] = {}
        self.transports: WeakSet[asyncio.Transport] = WeakSet()
        """Connections, of the browser and to sites."""
        self._config = uvicorn.Config(
            self._answer,
            log_config=None,
            log_level="critical",
            lifespan="off",
            interface="asgi3",
            http="h11",
            ws="none",
            access_log=False,
        )
        self._state = ServerState()

    async def open(self) -> None:
        """Listens on a free port of the loopback interface."""
        self._config.load()
        self._server = await asyncio.get_running_loop().create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.address = f"socks5://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """Stops listening and cuts all connections."""
        if self._server is not None:
            self._server.close()
        for transport in list(self.transports):
            transport.abort()
        for task in [*self._pinned.values(), *self._state.tasks]:
            task.cancel()

    def refuse(self, site: str) -> None:
        """Counts a site that was asked for in vain."""
        self.refused[site if site in self.refused or len(self.refused) < MAX_REFUSED else "others"] += 1

    async def addresses(self, site: str) -> list[str]:
        """The addresses at which a site of the network may be contacted, the same ones each time.

        Raises:
            EnvFailure: the site is not allowed, its name cannot be resolved, or none of its addresses is allowed.
        """
        if site not in self.reach.network:
            self.refuse(site)
            raise EnvFailure(f"{site} is none of the sites that the task allows")
        if site not in self._pinned:
            self._pinned[site] = asyncio.ensure_future(self._resolve(site))
        try:
            return await asyncio.shield(self._pinned[site])
        except EnvFailure:
            self._pinned.pop(site, None)
            raise

    async def _resolve(self, site: str) -> list[str]:
        name, _, port = site.rpartition(":")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECTING):
                found = await loop.getaddrinfo(name.strip("[]"), int(port), type=socket.SOCK_STREAM)
        except (OSError, TimeoutError, UnicodeError) as e:
            raise EnvFailure(f"the name {name} cannot be resolved: {e or 'no answer'}") from e
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        allowed = [ip for ip in addresses if self.reach.allows_address(name, int(port), ip)]
        if not allowed:
            self.refuse(site)
            raise EnvFailure(
                f"{site} is at {', '.join(addresses)}, which is no public address; name the address itself to allow it"
            )
        return allowed

    async def connect(self, site: str, protocol: asyncio.Protocol) -> None:
        """Connects to a site of the network.

        Raises:
            EnvFailure: it is not allowed, or cannot be reached.
        """
        loop, trouble = asyncio.get_running_loop(), "no address"
        for ip in await self.addresses(site):
            try:
                async with asyncio.timeout(CONNECTING):
                    transport, _ = await loop.create_connection(lambda: protocol, ip, int(site.rpartition(":")[2]))
                self.transports.add(transport)
                return
            except (OSError, TimeoutError) as e:
                trouble = str(e) or type(e).__name__
        raise EnvFailure(f"{site} cannot be reached: {trouble}")

    async def _answer(self, scope: Message, receive: Any, send: Any) -> None:
        """Answers a request of http for an application, and for a site that is refused."""
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if (app := self.reach.apps.get(host)) is not None:
            await app({**scope, "server": (host, 80)}, receive, send)
            return
        page = headers.get(b"sec-fetch-dest") == b"document" or b"upgrade-insecure-requests" in headers
        await send({"type": "http.response.start", "status": 204 if page else 403, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def serve_http(self, transport: asyncio.Transport) -> None:
        """Answers what comes over a connection with `_answer`."""
        protocol = H11Protocol(self._config, self._state, {})
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


class _Connection(asyncio.Protocol):
    """A connection of the browser, until it is known where it leads."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.received = b""
        self.greeted = False
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.gateway.transports.add(transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        if not self.greeted and len(self.received) >= 2 and len(self.received) >= 2 + self.received[1]:
            self.greeted, self.received = True, self.received[2 + self.received[1] :]
            self.transport.write(b"\x05\x00")  # without a password
        if self.greeted and self.task is None and (site := _site_asked_for(self.received)):
            self.task = asyncio.ensure_future(self._lead_to(site))

    async def _lead_to(self, site: str) -> None:
        gateway, (name, _, port) = self.gateway, site.rpartition(":")
        is_app = port == "80" and name in gateway.reach.apps
        if site in gateway.reach.network:
            near, far = _Relay(), _Relay()
            try:
                await gateway.connect(site, far)
            except EnvFailure:
                self._reply(UNREACHABLE)
                self.transport.close()
                return
            near.own, near.other, far.other = self.transport, far.own, self.transport
            self._reply(GRANTED)
            self.transport.set_protocol(near)
            far.own.resume_reading()
        elif is_app or port != "443":
            self._reply(GRANTED)
            gateway.serve_http(self.transport)
        else:  # no answer could be given without a certificate
            self._reply(NOT_ALLOWED)
            self.transport.close()
        if not is_app and site not in gateway.reach.network:
            gateway.refuse(site)

    def _reply(self, code: int) -> None:
        self.transport.write(bytes((5, code, 0, 1, 0, 0, 0, 0, 0, 0)))


def _site_asked_for(request: bytes) -> str:
    """The site that a request to connect names (RFC 1928, section 4); empty until all of it has come."""
    if len(request) < 5:
        return ""
    kind = request[3]
    start, length = (5, request[4]) if kind == 3 else (4, 16 if kind == 4 else 4)
    name, port = request[start : start + length], request[start + length : start + length + 2]
    if len(port) < 2:
        return ""
    text = name.decode("latin-1").lower() if kind == 3 else str(ipaddress.ip_address(name))
    return f"{f'[{text}]' if ':' in text else text}:{int.from_bytes(port)}"


class _Relay(asyncio.Protocol):
    """One end of a connection that is passed on: what comes here goes out at the other end."""

    own: asyncio.Transport
    other: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.own = transport
        transport.pause_reading()  # until it is known where to

    def data_received(self, data: bytes) -> None:
        self.other.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if hasattr(self, "other"):
            self.other.close()

    def pause_writing(self) -> None:
        self.other.pause_reading()

    def resume_writing(self) -> None:
        self.other.resume_reading()

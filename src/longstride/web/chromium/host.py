"""Chromium, one process for all episodes, in a thread of its own.

What always holds: the thread's event loop outlives the loops that wait for it, so a browser is started once, not once
an iteration; an episode has an incognito context of its own (cookies, storage, cache); a context that is used again was
emptied, and only by an episode that may reach the same hosts; whatever goes wrong with the browser is an `EnvFailure`
of the episodes that used it, and the next one finds a browser that runs; nothing is left running at exit.
"""

import asyncio
import atexit
import os
import shutil
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from longstride.core.errors import ConfigError, EnvFailure
from longstride.web.chromium.gateway import Gateway

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright, ViewportSize

T = TypeVar("T")
VIEWPORT: "ViewportSize" = {"width": 1280, "height": 720}
IDLE = 8
"""Contexts that are kept for the next episode."""
ANSWER = 15.0
"""Seconds that the browser or a page has for answering anything."""
CLOSING = 5.0
"""Seconds that a context or the browser has for closing."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = """--disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update
    --disable-sync --disable-breakpad --mute-audio --force-webrtc-ip-handling-policy=disable_non_proxied_udp
    --disable-features=Translate,OptimizationHints,MediaRouter,DeferRendererTasksAfterInput""".split()
"""Nothing of its own goes out; WebRTC goes through the proxy or not at all; a page's tasks are not held back after a
click or a key until the next frame was drawn."""


@cache
def find_chromium() -> str:
    """Path of the browser: `LONGSTRIDE_CHROMIUM`, else the first of `NAMES` on the PATH.

    Raises:
        ConfigError: there is none, or Playwright is not installed.
    """
    try:
        import playwright.async_api  # noqa: F401
    except ImportError as e:
        raise ConfigError("Chromium is driven through Playwright; install it: pip install 'longstride[browser]'") from e
    named = os.environ.get("LONGSTRIDE_CHROMIUM")
    path = shutil.which(named) if named else next((p for n in NAMES if (p := shutil.which(n))), None)
    if path is None:
        missing = f"LONGSTRIDE_CHROMIUM is {named!r}, which cannot be run" if named else "no Chromium was found"
        raise ConfigError(
            f"{missing}; install it (Debian: apt-get install -y chromium) or name it: LONGSTRIDE_CHROMIUM"
        )
    return path


@asynccontextmanager
async def trouble(what: str) -> AsyncIterator[None]:
    """Turns whatever Playwright raises, or no answer within `ANSWER`, into an `EnvFailure` that says what was done."""
    from playwright.async_api import Error

    try:
        async with asyncio.timeout(ANSWER):
            yield
    except Error as e:
        raise EnvFailure(f"{what}: {(str(e).splitlines() or [type(e).__name__])[0]}") from e
    except TimeoutError as e:
        raise EnvFailure(f"{what}: no answer within {ANSWER:g} s") from e


@dataclass(frozen=True)
class Reach:
    """What an episode may contact: the hosts of a gateway, and hosts (`name` or `name:port`) on the network."""

    gateway: Gateway
    network: frozenset[str] = frozenset()
    login: str = ""
    """File of cookies and storage (Playwright's storage state) that an episode begins with."""

    @property
    def hosts(self) -> list[str]:
        """All of them."""
        return sorted({*self.gateway.apps, *self.network})


class Host:
    """The thread, its loop and the browser in it. Coroutines named here run in that loop: `await host.run(...)`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._starting: asyncio.Lock | None = None
        self._idle: list[tuple[Reach, BrowserContext]] = []
        self.launches = 0
        """Browsers started so far: more than one if one crashed."""
        threading.Thread(target=self._loop.run_forever, name="chromium", daemon=True).start()
        atexit.register(self.stop)

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the browser's loop, from any other; cancelling the wait cancels it there."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    async def lease(self, reach: Reach) -> "BrowserContext":
        """An empty context for one episode.

        Raises:
            EnvFailure: the browser could not be started.
        """
        browser = await self._running()
        for k, (known, context) in enumerate(self._idle):
            if known == reach:
                del self._idle[k]
                return context
        if not reach.gateway.address:
            await reach.gateway.open()
        bypass = ",".join(["<-loopback>", *sorted(reach.network)])
        async with trouble("a browser context could not be opened"):
            return await browser.new_context(
                proxy={"server": reach.gateway.address, "bypass": bypass},
                viewport=VIEWPORT,
                accept_downloads=False,
                service_workers="block",
                locale="en-US",
                timezone_id="UTC",
                storage_state=reach.login or None,
            )

    async def give_back(self, reach: Reach, context: "BrowserContext", whole: bool) -> None:
        """Takes a context back; `whole` says whether nothing went wrong in it, so that it may be used again."""
        from playwright.async_api import Error

        try:
            async with asyncio.timeout(CLOSING):
                if whole and not reach.login and len(self._idle) < IDLE and context.browser is self._browser:
                    await self._empty(reach, context)
                    self._idle.append((reach, context))
                else:
                    await context.close()
        except (TimeoutError, Error):
            with suppress(TimeoutError, Error):
                async with asyncio.timeout(CLOSING):
                    await context.close()

    async def _empty(self, reach: Reach, context: "BrowserContext") -> None:
        """Leaves nothing of an episode: pages with their session storage and history, cookies, storage, cache."""
        page = await context.new_page()
        cdp = await context.new_cdp_session(page)
        await asyncio.gather(*[p.close() for p in context.pages if p is not page], context.clear_cookies())
        await context.clear_permissions()
        origins = [f"{scheme}://{host}" for host in reach.hosts for scheme in ("http", "https")]
        clear = [cdp.send("Storage.clearDataForOrigin", {"origin": o, "storageTypes": "all"}) for o in origins]
        await asyncio.gather(cdp.send("Network.clearBrowserCache"), *clear)
        await page.close()

    async def _running(self) -> "Browser":
        self._starting = self._starting or asyncio.Lock()
        async with self._starting:
            if self._browser is not None and self._browser.is_connected():
                return self._browser
            self._idle.clear()
            if self._playwright is None:
                from playwright.async_api import async_playwright

                self._playwright = await async_playwright().start()
            root = hasattr(os, "geteuid") and os.geteuid() == 0
            async with trouble("Chromium could not be started"):
                self._browser = await self._playwright.chromium.launch(
                    executable_path=find_chromium(), args=FLAGS, chromium_sandbox=not root, timeout=30_000
                )
            self.launches += 1
            return self._browser

    async def _close(self) -> None:
        self._idle.clear()
        if self._browser is not None:
            await self._browser.close()
        if self._playwright is not None:
            await self._playwright.stop()
        self._browser = self._playwright = None

    def stop(self) -> None:
        """Ends the browser. Another `lease` would start it again."""
        with suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(CLOSING)

    @property
    def browser(self) -> "Browser | None":
        """The browser, where one was started."""
        return self._browser


@cache
def host() -> Host:
    """The process's own."""
    return Host()

"""The Chromium of a process, for all episodes, in a thread of its own.

What always holds: the thread's event loop outlives the loops that wait for it, so a browser is started once, not once
an iteration; an episode has an incognito context (cookies, storage, cache) and a way out of its own; a context is used
again only after it was emptied, and only by an episode that may contact the same applications and nothing else; a
browser that ended, that does not answer, or that does not close a context is ended and replaced, whatever a page did
to it: the episodes that used it fail, and the next one finds a browser that runs.
"""

import asyncio
import atexit
import logging
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from longstride.web.chromium.failures import PageFailure, trouble
from longstride.web.chromium.gateway import Gateway
from longstride.web.chromium.process import CLOSING, FLAGS, Chromium, find_chromium
from longstride.web.chromium.reach import Reach

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, ViewportSize

__all__ = ["FLAGS", "Host", "Lease", "find_chromium", "host"]

_log = logging.getLogger(__name__)
T = TypeVar("T")
VIEWPORT: "ViewportSize" = {"width": 1280, "height": 720}
IDLE = 8
"""Contexts that are kept for the next episode."""
TRIES = 2
"""Browsers that are started for one context."""


@dataclass(eq=False)
class Lease:
    """A context that an episode has."""

    chromium: Chromium
    reach: Reach
    gateway: Gateway
    context: "BrowserContext"

    @property
    def browser(self) -> "Browser":
        return self.chromium.browser

    async def end(self) -> bool:
        """Closes the context and its way out; whether it closed."""
        from playwright.async_api import Error

        try:
            async with asyncio.timeout(CLOSING):
                await self.context.close()
        except (TimeoutError, Error):
            return False
        finally:
            await self.gateway.close()
        return True


class Host:
    """The thread, its loop and the browser in it. Coroutines named here run in that loop: `await host.run(...)`."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop = asyncio.new_event_loop()
        self._starting = asyncio.Lock()
        self._chromium: Chromium | None = None
        self._idle: list[Lease] = []
        self.launches = 0
        """Browsers started so far: more than one if one was replaced."""
        atexit.register(self.stop)

    @property
    def browser(self) -> "Browser | None":
        """The browser, where one was started."""
        return None if self._chromium is None else self._chromium.browser

    @property
    def chromium(self) -> Chromium | None:
        """The process, where one was started."""
        return self._chromium

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the browser's loop, from any other; cancelling the wait cancels it there."""
        with self._guard:
            if self._thread is None:
                self._loop, self._starting = asyncio.new_event_loop(), asyncio.Lock()
                # what Playwright raises for calls that nobody waits for any more
                self._loop.set_exception_handler(lambda _, context: _log.debug("%s", context))
                self._thread = threading.Thread(target=self._loop.run_forever, name="chromium", daemon=True)
                self._thread.start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    async def lease(self, reach: Reach) -> Lease:
        """An empty context for one episode.

        Raises:
            ConfigError: there is no Chromium, or Playwright is missing.
            PageFailure: the browser could not be started, or does not open a context.
        """
        for k, lease in enumerate(self._idle):
            if lease.reach == reach and lease.chromium.runs:
                return self._idle.pop(k)
        for left in reversed(range(TRIES)):
            chromium = await self._running()
            gateway = Gateway(reach)
            await gateway.open()
            try:
                async with trouble("a browser context could not be opened"):
                    context = await chromium.browser.new_context(
                        proxy={"server": gateway.address, "bypass": "<-loopback>"},
                        viewport=VIEWPORT,
                        accept_downloads=False,
                        service_workers="block",
                        locale="en-US",
                        timezone_id="UTC",
                        storage_state=reach.login or None,
                    )
            except PageFailure:
                await gateway.close()
                if await chromium.answers() or not left:
                    raise
                await self.replace(chromium)
            else:
                return Lease(chromium, reach, gateway, context)
        raise AssertionError("unreachable")

    async def give_back(self, lease: Lease, in_order: bool) -> None:
        """Takes a context back; `in_order` is whether nothing went wrong in it, so that it may be used again."""
        from playwright.async_api import Error

        again = in_order and not lease.reach.network and not lease.reach.login and len(self._idle) < IDLE
        if again and lease.chromium is self._chromium:
            with suppress(TimeoutError, Error):
                async with asyncio.timeout(CLOSING):
                    await _empty(lease)
                    self._idle.append(lease)
                    return
        if not await lease.end() or not (in_order or await lease.chromium.answers()):
            await self.replace(lease.chromium)

    async def replace(self, chromium: Chromium) -> None:
        """Ends a browser at once; the next context is one of another."""
        if chromium is self._chromium:
            self._chromium = None
            await self._forget_idle()
        await chromium.end(at_once=True)

    async def _running(self) -> Chromium:
        async with self._starting:
            if self._chromium is not None and not self._chromium.runs:
                await self.replace(self._chromium)
            if self._chromium is None:
                self._chromium = await Chromium.launch()
                self.launches += 1
            return self._chromium

    async def _forget_idle(self) -> None:
        idle, self._idle = self._idle, []
        for lease in idle:
            await lease.gateway.close()

    async def _close(self) -> None:
        await self._forget_idle()
        chromium, self._chromium = self._chromium, None
        if chromium is not None:
            await chromium.end(at_once=False)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.get_running_loop().shutdown_default_executor()

    def stop(self) -> None:
        """Ends the browser and the thread. Another `run` would start both again."""
        with self._guard:
            thread, self._thread = self._thread, None
            if thread is not None:
                with suppress(Exception):
                    asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(4 * CLOSING)
                self._loop.call_soon_threadsafe(self._loop.stop)
                thread.join(CLOSING)
                if not thread.is_alive():
                    self._loop.close()


async def _empty(lease: Lease) -> None:
    """Leaves nothing of an episode: pages with their session storage and history, cookies, storage, cache."""
    context = lease.context
    page = await context.new_page()
    cdp = await context.new_cdp_session(page)
    await asyncio.gather(*[p.close() for p in context.pages if p is not page], context.clear_cookies())
    await context.clear_permissions()
    clear = [
        cdp.send("Storage.clearDataForOrigin", {"origin": f"{scheme}://{name}", "storageTypes": "all"})
        for name in lease.reach.apps
        for scheme in ("http", "https")
    ]
    await asyncio.gather(cdp.send("Network.clearBrowserCache"), *clear)
    await page.close()
    lease.gateway.refused.clear()


@cache
def host() -> Host:
    """The process's own."""
    return Host()

"""A thread for BrowserGym: synchronous Playwright, the system's Chromium, and an end to calls that hang.

What always holds: a call does not block the event loop that awaits it; the browsers of a call that is late or was
cancelled are ended; everything that BrowserGym raises becomes an `EnvFailure`.
"""

import asyncio
import importlib
import os
import queue
import signal
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from longstride.core.errors import EnvFailure, MissingExtra
from longstride.web.chromium.process import FLAGS, environment, find_chromium

T = TypeVar("T")


def require(package: str) -> Any:
    """The module `browsergym.PACKAGE`; importing it registers its environments.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        module = importlib.import_module(f"browsergym.{package}")
    except ModuleNotFoundError as e:
        extra = "'longstride[browsergym]'" if package in ("core", "miniwob") else f"browsergym-{package}"
        raise MissingExtra(f"browsergym.{package} is not installed ({e}); install it: pip install {extra}") from e
    return module


class PlaywrightThread:
    """A thread with its Playwright. What is called in it is done in turn.

    BrowserGym has one Playwright a process, and Playwright's synchronous calls belong to the thread that started it.
    So BrowserGym is given `_Playwright`, which is for each thread the one that was started there.
    """

    own = threading.local()

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self.browsers: set[int] = set()
        """Process ids of the browsers that are running."""
        require("core")._set_global_playwright(_Playwright())
        threading.Thread(target=self._work, name="browsergym", daemon=True).start()

    async def call(self, function: Callable[[], T], seconds: float, what: str) -> T:
        """Calls a function in the thread.

        Raises:
            EnvFailure: it raised, or took longer; what was late, or was cancelled, has lost its browsers.
        """
        future: Future[T] = Future()
        self._calls.put((function, future))
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(future)
        except TimeoutError as e:
            self.end()
            raise EnvFailure(f"BrowserGym's {what} did not end within {seconds:g} s") from e
        except asyncio.CancelledError:
            self.end()
            raise
        except (Exception, SystemExit) as e:  # BrowserGym and its tasks raise whatever they come across
            first = (str(e).splitlines() or [""])[0]
            raise EnvFailure(f"BrowserGym's {what} failed: {type(e).__name__}: {first}") from e

    def end(self) -> None:
        """Ends the browsers at once, which frees a thread that waits for them, and then the thread."""
        self._calls.put(None)
        while self.browsers:
            with suppress(ProcessLookupError):
                os.kill(self.browsers.pop(), signal.SIGKILL)

    def _work(self) -> None:
        from playwright.sync_api import sync_playwright

        folder = tempfile.TemporaryDirectory(prefix="longstride-chromium-", ignore_cleanup_errors=True)
        with folder, suppress(Exception), sync_playwright() as playwright:  # on the way out: its driver may be gone
            self.own.playwright, self.own.thread, self.own.environment = playwright, self, environment(folder.name)
            while (call := self._calls.get()) is not None:
                function, future = call
                if future.set_running_or_notify_cancel():
                    try:
                        future.set_result(function())
                    except BaseException as e:
                        future.set_exception(e)


class _Playwright:
    """In place of BrowserGym's global Playwright: that of the thread, with the system's Chromium."""

    @property
    def selectors(self) -> Any:
        return PlaywrightThread.own.playwright.selectors

    @property
    def chromium(self) -> "_Playwright":
        return self

    def launch(self, args: Any = None, **settings: Any) -> Any:
        """Starts Chromium as the caller wants it, and remembers its process."""
        thread: PlaywrightThread = PlaywrightThread.own.thread
        settings = {"executable_path": find_chromium(), "env": PlaywrightThread.own.environment} | settings
        browser = PlaywrightThread.own.playwright.chromium.launch(args=[*(args or ()), *FLAGS], **settings)
        session = browser.new_browser_cdp_session()
        processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
        session.detach()
        process = next(p["id"] for p in processes if p["type"] == "browser")
        thread.browsers.add(process)
        browser.on("disconnected", lambda _: thread.browsers.discard(process))
        return browser

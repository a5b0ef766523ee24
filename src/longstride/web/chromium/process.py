"""One Chromium process, with the Playwright that drives it.

What always holds: both are ended together, whatever they still answer, and leave no process and no file; Chromium sends
only what a page asks for, and only through the proxy of the page's context; a page cannot flood the browser with
navigations, nor open windows that its visitor did not ask for, nor start a program of the desktop (on Linux).
"""

import asyncio
import os
import re
import shutil
import signal
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longstride.core.errors import ConfigError
from longstride.web.chromium.failures import trouble
from longstride.web.chromium.gateway import Gateway
from longstride.web.chromium.reach import Reach

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession, Playwright

STARTING = 30.0
"""Seconds that the browser has for starting."""
CLOSING = 5.0
"""Seconds that a context, the browser or Playwright has for closing."""
PROBE = 5.0
"""Seconds in which a browser that works gives its version."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
DISABLED = """AimEnabled AvoidCorsURLLoaderRestartOnRedirect AvoidUnnecessaryBeforeUnloadCheckSync
    DeferRendererTasksAfterInput DestroyProfileOnBrowserClose DialMediaRouteProvider GlobalMediaControls
    HttpsFirstBalancedModeAutoEnable HttpsUpgrades InterestFeedContentSuggestions LensOverlay MediaRouter
    NetworkTimeServiceQuerying OptimizationHints PaintHolding PreconnectToSearch SafeBrowsing
    ThirdPartyStoragePartitioning Translate WebRtcHideLocalIpsWithMdns""".split()
"""Features that are off: those that contact hosts of their own, those that Playwright turns off (Chromium takes only
the last list of its command line), the one that delays a page's tasks after a click or a key to the next frame, and
the one that asks the network, by multicast, for a name that a page says is that of a peer."""
FLAGS = (
    """--disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update
    --disable-sync --disable-breakpad --mute-audio --no-pings --disable-domain-reliability
    --webrtc-ip-handling-policy=disable_non_proxied_udp
    --force-webrtc-ip-handling-policy=disable_non_proxied_udp""".split()
    + [f"--disable-features={','.join(DISABLED)}"]
)
"""Chromium asks for little of its own; WebRTC goes through the proxy or not at all (the second name of its policy is
that of older versions)."""
CLOSED = ["--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]
"""Chromium resolves no name: the proxy of a context does."""
UNPROTECTED = ["--disable-ipc-flooding-protection", "--disable-popup-blocking"]
"""What Playwright would turn off, and a hostile page needs."""
DESKTOP = ("xdg-open", "xdg-email", "xdg-settings", "xdg-mime")
"""Programs that Chromium starts for addresses that are not its own, such as `mailto:`, also without a click."""


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


def environment(folder: str) -> dict[str, Any]:
    """The environment in which Chromium starts: temporary files are in a folder, programs of the desktop do nothing,
    and no session bus leads to them."""
    programs = Path(folder, "programs")
    programs.mkdir()
    for name in DESKTOP:
        (programs / name).symlink_to(shutil.which("true") or "/bin/true")
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "TMPDIR": folder, "PATH": path, "DBUS_SESSION_BUS_ADDRESS": "disabled:"}


class Chromium:
    """A browser that runs. Made by `launch`."""

    browser: "Browser"
    driver = 0
    """Process id of Playwright's driver, on Linux."""

    def __init__(self, playwright: "Playwright", gateway: Gateway, folder: str) -> None:
        self.gateway = gateway
        """The proxy of what Chromium asks for by itself; it refuses all of it."""
        self.ended = False
        self._playwright, self._folders = playwright, [folder]
        self._session: CDPSession | None = None
        self._began: dict[int, str] = {}
        """When each process began, by its id: an id may be that of another process later."""
        self._process = 0

    @classmethod
    async def launch(cls) -> "Chromium":
        """Starts one.

        Raises:
            ConfigError: there is no Chromium, or Playwright is missing.
            PageFailure: it did not start.
        """
        path = find_chromium()
        from playwright.async_api import async_playwright

        gateway, folder = Gateway(Reach()), tempfile.mkdtemp(prefix="longstride-chromium-")
        await gateway.open()
        chromium = cls(await async_playwright().start(), gateway, folder)
        try:
            async with trouble("Chromium could not be started", STARTING):
                chromium.browser = await chromium._playwright.chromium.launch(
                    executable_path=path,
                    args=FLAGS + CLOSED,
                    ignore_default_args=UNPROTECTED,
                    chromium_sandbox=not (hasattr(os, "geteuid") and os.geteuid() == 0),
                    proxy={"server": gateway.address, "bypass": "<-loopback>"},
                    env=environment(folder),
                    artifacts_dir=folder,
                    timeout=1000 * STARTING,
                )
                await chromium._find_processes()
        except BaseException:
            await chromium.end(at_once=True)
            raise
        return chromium

    async def _find_processes(self) -> None:
        self._session = await self.browser.new_browser_cdp_session()
        found = (await self._session.send("SystemInfo.getProcessInfo"))["processInfo"]
        self._process = next(p["id"] for p in found if p["type"] == "browser")
        parent, began = _parent_and_beginning(self._process)
        self._began[self._process] = began
        if parent not in (0, 1, os.getpid()):
            self.driver = parent
            self._began[parent] = _parent_and_beginning(parent)[1]
        command = (await self._session.send("SystemInfo.getInfo"))["commandLine"]
        self._folders += re.findall(r"--user-data-dir=(\S*playwright\S*)", command)

    @property
    def runs(self) -> bool:
        """Whether the process is there, as far as Playwright knows."""
        return not self.ended and self.browser.is_connected()

    async def answers(self) -> bool:
        """Whether the browser still answers."""
        from playwright.async_api import Error

        assert self._session is not None
        with suppress(TimeoutError, Error):
            async with asyncio.timeout(PROBE):
                await self._session.send("Browser.getVersion")
                return self.runs
        return False

    async def end(self, at_once: bool) -> None:
        """Ends browser and Playwright; with `at_once` the browser is not asked to. Does nothing the second time."""
        if self.ended:
            return
        self.ended = True
        if at_once:
            self._kill(self._process)
        try:
            with suppress(Exception):  # one that is gone raises whatever it likes
                async with asyncio.timeout(CLOSING):
                    await self.browser.close()
            self._kill(self._process)
            with suppress(Exception):
                async with asyncio.timeout(CLOSING):
                    await self._playwright.stop()
        finally:
            self._kill(self.driver)
            await self.gateway.close()
            for folder in self._folders:
                shutil.rmtree(folder, ignore_errors=True)

    def _kill(self, process: int) -> None:
        """Kills one of the processes, with its group where it leads one, if it is there."""
        with suppress(ProcessLookupError):
            if process and _parent_and_beginning(process)[1] == self._began[process]:
                if os.getpgid(process) == process:
                    os.killpg(process, signal.SIGKILL)
                else:
                    os.kill(process, signal.SIGKILL)


def _parent_and_beginning(process: int) -> tuple[int, str]:
    """The id of a process's parent, and when it began, from Linux's /proc; zero and nothing elsewhere."""
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return int(fields[1]), fields[19]
    return 0, ""

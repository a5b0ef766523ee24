"""Episodes in Chromium: `WebEnv` with a real browser.

What always holds: a reset or a step runs in the browser's own loop; an episode that fails is counted by its cause and
its site (`failures.dropped`), which its message names; the embedded sites are the same application that the text
browser calls, so a task, its evaluator and its state are the same in both.
"""

from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

from longstride.core.content import Media
from longstride.core.errors import EnvFailure
from longstride.core.task import Task
from longstride.envs.base import Observation, Step
from longstride.envs.sites import application
from longstride.envs.sites.env import WebEnv
from longstride.envs.sites.tasks import BROWSERS
from longstride.web.chromium.browser import ChromiumBrowser, View
from longstride.web.chromium.failures import Cause, PageFailure, dropped
from longstride.web.chromium.host import find_chromium, host
from longstride.web.chromium.reach import Reach, site_of

Seen = TypeVar("Seen", Observation, Step)
T = TypeVar("T")
SITES = "sites.test"
"""The host name of the embedded sites."""


@cache
def sites() -> Reach:
    """What an episode on the embedded sites may contact."""
    return Reach({SITES: application()})


class ChromiumEnv(WebEnv):
    """One episode in an isolated context of the process's one Chromium.

    Args:
        reach: what may be contacted; the embedded sites if left out.
        origin: where a start without a host is.
        window: lines of a page that are seen at once.
        view: what the observation's text is: see `ChromiumBrowser`.
        screenshot: whether an observation has a picture of the screen with the elements' numbers on it.

    Raises:
        ConfigError: there is no Chromium, or Playwright is missing.
    """

    def __init__(
        self,
        reach: Reach | None = None,
        origin: str = f"http://{SITES}",
        window: int = 60,
        view: View = "elements",
        screenshot: bool = False,
    ) -> None:
        find_chromium()
        self.reach, self.origin, self.window = reach or sites(), origin, window
        self.view: View = view
        self.screenshot = screenshot
        self._browser: ChromiumBrowser | None = None
        self._root, self._site = "/", site_of(origin)

    @property
    def browser(self) -> ChromiumBrowser:
        if self._browser is None:
            raise RuntimeError("a ChromiumEnv is used between reset and close")
        return self._browser

    def make_browser(self) -> ChromiumBrowser:
        return ChromiumBrowser(host(), self.reach, self.origin, self.window, self.view)

    async def reset(self, task: Task, seed: int) -> Observation:
        self._site = site_of(task.start) or self._site
        return await self._run(self._pictured(super().reset(task, seed)))

    async def step(self, text: str) -> Step:
        return await self._run(self._pictured(super().step(text)))

    async def final_state(self) -> dict[str, Any]:
        return await self._run(super().final_state())

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a part of the episode in the browser's loop.

        Raises:
            PageFailure: the episode fails; the message begins with the site.
        """
        try:
            return await host().run(work)
        except EnvFailure as e:
            cause: Cause = "not opened"
            if isinstance(e, PageFailure):
                cause = e.cause
            dropped.add(cause, self._site)
            raise PageFailure(cause, f"{self._site}: {e}") from e

    async def _pictured(self, seeing: Coroutine[Any, Any, Seen]) -> Seen:
        seen = await seeing
        if self.screenshot and not self.browser.is_unread:
            observation = seen if isinstance(seen, Observation) else seen.observation
            observation.content = observation.text, Media(await self.browser.screenshot())
        return seen

    async def close(self) -> None:
        if self._browser is not None:
            browser, self._browser = self._browser, None
            await host().run(browser.close())


BROWSERS["chromium"] = lambda window: ChromiumEnv(window=window)

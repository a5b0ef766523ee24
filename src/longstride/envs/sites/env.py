"""One episode on a web site: a browser behind the interface of an environment.

What always holds: any text of the policy is one step; if it had no effect, the last line of the next observation
explains why (`error: ...`); nothing on a page makes a step raise; only a failure of the application is an `EnvFailure`.
Observations do not repeat the goal.
"""

from typing import Annotated, Any, Protocol
from urllib.parse import urlsplit

from pydantic import Field

from longstride.core.errors import EnvFailure
from longstride.core.foreign import UnreadableError, read_json
from longstride.core.task import Task
from longstride.envs.base import Observation, Step
from longstride.envs.sites.actions import INFEASIBLE, MANUAL, WebAction, parse
from longstride.envs.sites.browser import Application, TextBrowser

Window = Annotated[int, Field(ge=5)]
"""Lines of a page that are seen at once."""


class Browser(Protocol):
    """One visitor: what a text browser and a real one have in common. An action returns None, or one sentence that
    explains why it had no effect; infrastructure trouble raises `EnvFailure`."""

    window: int

    @property
    def url(self) -> str: ...
    @property
    def status(self) -> int: ...
    def text(self) -> str: ...
    async def open(self, url: str) -> str | None: ...
    async def goto(self, url: str) -> str | None: ...
    async def home(self) -> str | None: ...
    async def back(self) -> str | None: ...
    async def scroll(self, down: bool) -> str | None: ...
    async def click(self, number: int) -> str | None: ...
    async def hover(self, number: int) -> str | None: ...
    async def fill(self, number: int, words: str) -> str | None: ...
    async def type(self, number: int, words: str) -> str | None: ...
    async def select(self, number: int, option: str) -> str | None: ...
    async def wait(self) -> str | None: ...
    async def new_tab(self) -> str | None: ...
    async def switch_tab(self, number: int) -> str | None: ...
    async def fetch(self, path: str) -> tuple[int, bytes]: ...


class WebEnv:
    """An `Env` on an ASGI application. The task's start is an address of it; its seed has no use here."""

    def __init__(self, app: Application, window: int = 60) -> None:
        """`window`: lines of a page that are seen at once."""
        self.app, self.window = app, window
        self._browser: Browser | None = None
        self._root = "/"

    @property
    def browser(self) -> Browser:
        """The episode's browser, between `reset` and `close`."""
        if self._browser is None:
            raise RuntimeError("a WebEnv is used between reset and close")
        return self._browser

    def make_browser(self) -> Browser:
        """A new visitor."""
        return TextBrowser(self.app, window=self.window)

    async def reset(self, task: Task, seed: int) -> Observation:
        """Opens the task's start.

        Raises:
            EnvFailure: the start is outside of the application, is not there, or the application failed.
        """
        self._browser = self.make_browser()
        error = await self.browser.open(task.start)
        if error is None and self.browser.status >= 400:
            error = f"status {self.browser.status}"
        if error is not None:
            raise EnvFailure(f"the start {task.start!r} of task {task.id!r} could not be opened: {error}")
        segments = [s for s in urlsplit(task.start).path.split("/") if s]
        self._root = "".join(f"/{s}" for s in segments[:2]) + "/"
        first = self._observe(None)
        first.manual = MANUAL
        return first

    async def step(self, text: str) -> Step:
        """Does what the policy's text says. Raises: EnvFailure when the application fails."""
        action = parse(text)
        if isinstance(action, str):
            return Step(self._observe(action), error=action)
        if action.verb in ("answer", "infeasible"):
            answer = action.text if action.verb == "answer" else INFEASIBLE
            return Step(self._observe(None), terminated=True, action=str(action), answer=answer)
        try:
            error = await self._perform(action)
        except EnvFailure:
            raise
        except Exception as e:  # a page is untrusted: what it breaks here costs a step, not the episode
            error = f"the page could not be read ({type(e).__name__})"
        return Step(self._observe(error), action=str(action), error=error)

    async def final_state(self) -> dict[str, Any]:
        """What `__state__` below the site's root (the first two parts of the start's path) answers; `{}` for 404.

        Raises:
            EnvFailure: another status, or not a JSON object.
        """
        path = f"{self._root}__state__"
        status, body = await self.browser.fetch(path)
        if status == 404:
            return {}
        try:
            state = read_json(body) if status == 200 else None
        except UnreadableError as e:
            raise EnvFailure(f"{path} {e}") from e
        if not isinstance(state, dict):
            raise EnvFailure(f"{path} answered status {status} with {body[:60]!r}; a JSON object was expected")
        return state

    async def close(self) -> None:
        """Forgets the browser."""
        self._browser = None

    async def _perform(self, action: WebAction) -> str | None:
        browser = self.browser
        match action:
            case WebAction("click", int(number)):
                return await browser.click(number)
            case WebAction("type", int(number), words):
                return await browser.type(number, words)
            case WebAction("fill", int(number), words):
                return await browser.fill(number, words)
            case WebAction("select", int(number), words):
                return await browser.select(number, words)
            case WebAction("scroll"):
                return await browser.scroll(down=action.text == "down")
            case WebAction("back"):
                return await browser.back()
            case WebAction("home"):
                return await browser.home()
            case WebAction("hover", int(number)):
                return await browser.hover(number)
            case WebAction("goto"):
                return await browser.goto(action.text)
            case WebAction("tab"):
                return await (browser.new_tab() if action.text == "new" else browser.switch_tab(int(action.text)))
        return await browser.wait()

    def _observe(self, error: str | None) -> Observation:
        text = self.browser.text()
        return Observation(f"{text}\nerror: {error}" if error else text, self.browser.url)

"""A visitor of pages in Chromium: the text browser's interface on a real browser.

What always holds: an action is done with real mouse and keyboard events on what is on the screen, and returns None or
one sentence that explains why it had no effect; it is over when the resulting page stands still, or was stopped; the
page is read once an action; only the sites of its `Reach` are contacted; text that comes from a page has no lone
surrogates. Files cannot be uploaded or downloaded.
"""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urljoin, urlsplit

from longstride.core.errors import EnvFailure, short
from longstride.envs.sites.browser import OUTSIDE, TextBrowser
from longstride.envs.sites.cleaning import well_formed
from longstride.web.chromium.axtree import MAX_NODES, Tree
from longstride.web.chromium.failures import PageFailure, trouble, unread
from longstride.web.chromium.host import Host, Lease
from longstride.web.chromium.outside import Run, aside, call, on_page
from longstride.web.chromium.reach import Reach, site_of
from longstride.web.chromium.tab import Tab

if TYPE_CHECKING:
    from playwright.async_api import Page

View = Literal["elements", "axtree"]
MAX_TABS = 8
PATIENCE = 3
"""Looks in a row at a page that cannot be read; then the episode fails."""
UNREAD = "this page cannot be read"
OPENS = 3.0
"""Seconds that the windows which a page opens have for coming."""


class ChromiumBrowser:
    """One visitor. Everything here runs in the loop of `host`.

    Args:
        host: whose browser is used.
        reach: what may be contacted.
        origin: where an address without a host is.
        window: lines of a page that are seen at once.
        view: `elements` is the text browser's text, `axtree` Chromium's accessibility tree.
        script: run in every document before its own scripts, among them.
    """

    def __init__(
        self, host: Host, reach: Reach, origin: str, window: int = 60, view: View = "elements", script: str = ""
    ) -> None:
        self.host, self.reach, self.origin, self.window = host, reach, origin.rstrip("/"), window
        self.view, self.script = view, script
        self._lease: Lease | None = None
        self._tabs: list[Tab] = []
        self._at = 0
        self._opened: asyncio.Queue[Page] = asyncio.Queue()
        self._offsets: dict[tuple[int, str], int] = {}
        self._tree: Tree | None = None
        self._first = "/"
        self._notices: list[str] = []
        self._unread = 0

    @property
    def lease(self) -> Lease:
        """What the visitor has of the browser, from `open` to `close`."""
        if self._lease is None:
            raise EnvFailure("nothing is open")
        return self._lease

    @property
    def tab(self) -> Tab:
        """The one in front."""
        return self._tabs[self._at]

    @property
    def is_unread(self) -> bool:
        """Whether the page in front does not answer, or has crashed."""
        return self._unread > 0

    @property
    def url(self) -> str:
        """Full address of the open page."""
        return self.tab.seen["url"]

    @property
    def status(self) -> int:
        """HTTP status of the open page."""
        return self.tab.seen["status"]

    @property
    def title(self) -> str:
        return self.tab.seen["title"]

    @property
    def note(self) -> str:
        """The attribute `data-note` of the page's root, for pages that are trusted."""
        return self.tab.seen.get("note", "")

    @property
    def as_opened(self) -> bool:
        """Whether there is one tab, whose window is where it began."""
        return len(self._tabs) == 1 and not any(self._offsets.values())

    @property
    def lines(self) -> list[str]:
        """All lines of the page, as the view has it. A page that is too large or too slow for its accessibility tree is
        shown by its elements."""
        return self.tab.seen["lines"] if self._tree is None else self._tree.lines

    def text(self) -> str:
        """The window over the open page."""
        at, lines = self._offset, self.lines
        shown = lines[at : at + self.window]
        if at:
            shown.insert(0, "scroll up for more")
        if self.status >= 400:
            shown.insert(0, f"status {self.status}")
        if at + self.window < len(lines):
            shown.append("scroll down for more")
        if len(self._tabs) > 1:
            shown.insert(0, f"tab {self._at + 1} of {len(self._tabs)}")
        shown += self._notices
        return "\n".join(shown)

    async def open(self, url: str) -> str | None:
        """Goes to an address (full, or a path) in a new context; `home` comes back to it."""
        if self._lease is None:
            self._lease = await self.host.lease(self.reach)
            self._lease.context.on("page", self._on_page)
            await self._add_tab()
            self._first = url
        return await self.goto(url)

    async def goto(self, url: str) -> str | None:
        """Goes to an address that the task allows."""
        try:
            full = urljoin(self.url if self.url.startswith("http") else f"{self.origin}/", url.strip())
        except ValueError:
            return OUTSIDE
        if not self.reach.allows(full):
            return OUTSIDE
        if full == self.url:  # the same address again takes its place
            self._offsets.pop((self._at, self.tab.seen["entry"]), None)
        if self.is_unread:  # nothing could take its place in this tab
            await self._leave_unread()
        error = await self.tab.go(full)
        await self._look()
        return f"the address did not open: {error}" if error else None

    async def home(self) -> str | None:
        """Goes to the first address."""
        return await self.goto(urljoin(f"{self.origin}/", self._first))

    async def back(self) -> str | None:
        if self.is_unread:
            return f"{UNREAD}; it can be left by goto or home"
        if not await self.tab.traverse(-1):
            return "there is no page before this one"
        return await self._look()

    async def scroll(self, down: bool) -> str | None:
        """Moves the window over the page's lines, and the page below the mouse."""
        at = self._offset + (self.window if down else -self.window)
        if not self.is_unread:
            with suppress(PageFailure):
                async with trouble("scrolling"):
                    await self.tab.page.mouse.wheel(0, 600 if down else -600)
        refused = await self._look()
        if at < 0:
            return refused or "this is the top of the page"
        if at >= len(self.lines):
            return refused or "this is the end of the page"
        self._offsets[self._at, self.tab.seen["entry"]] = at
        return refused

    async def click(self, number: int) -> str | None:
        """Presses the left button on the element."""
        return await self._attempt(self._point("click", number))

    async def hover(self, number: int) -> str | None:
        """Puts the mouse over the element."""
        return await self._attempt(self._point("hover", number))

    async def fill(self, number: int, words: str) -> str | None:
        """Types words into a text field, in place of what is in it; clicks it before where it has not the focus."""
        return await self._attempt(self._put(number, words)) or await self._look()

    async def type(self, number: int, words: str) -> str | None:
        """Types words into a text field and presses Enter."""
        return await self._attempt(self._type(number, words))

    async def _type(self, number: int, words: str) -> str | None:
        if error := await self._put(number, words):
            return error
        idle = await self._call("enter", number)
        if idle is None:
            return await self._look()  # Enter is a line break there
        before = self._state()
        await self.tab.type("\n")
        return await self._look() or (idle if idle and self._state() == before else None)

    async def select(self, number: int, option: str) -> str | None:
        """Chooses an option by its label, else by its value; case does not count."""
        return await self._attempt(self._on(number, "select", option)) or await self._look()

    async def wait(self) -> str | None:
        """Looks again."""
        return await self._look()

    async def new_tab(self, url: str = "") -> str | None:
        """Opens an address, the first one if it is left out, in a new tab."""
        if len(self._tabs) >= MAX_TABS:
            return f"{MAX_TABS} tabs are open, and no more can be"
        await self._add_tab()
        return await (self.goto(url) if url else self.home())

    async def switch_tab(self, number: int) -> str | None:
        """Brings tab `number` (from 1) to the front."""
        if not 1 <= number <= len(self._tabs):
            return f"there is no tab {number}; there are {len(self._tabs)}"
        self._at = number - 1
        async with trouble("the tab could not be brought to the front"):
            await self.tab.page.bring_to_front()
        return await self._look()

    async def screenshot(self, marks: bool = True) -> bytes:
        """A PNG of what is on the screen; with `marks` every element wears its number."""
        async with trouble("a screenshot could not be made"):
            if not marks:
                return await self.tab.page.screenshot()
            await self._call("mark")
            try:
                return await self.tab.page.screenshot()
            finally:
                await self._call("unmark")

    async def evaluate(self, expression: str) -> Any:
        """The value of an expression among the page's own scripts: for pages that are trusted, and for evaluators."""
        async with trouble("the page's program failed"):
            return well_formed(await self.tab.page.evaluate(expression))

    def aside(self, url: str = "") -> AbstractAsyncContextManager[Run]:
        """Runs an evaluator's JavaScript on the page in front or, for an address, on a page of its own. The result is
        None where it raises.

        Raises:
            EnvFailure: the address is none that may be contacted.
        """
        if url and not self.reach.allows(url):
            raise EnvFailure(f"{short(url)} is no address of the sites of this task")
        return aside(self.lease.context, self._opened, url) if url else on_page(self.tab.page)

    async def call(self, method: str, url: str, data: Any = None, headers: Mapping[str, str] = {}) -> tuple[int, bytes]:
        """See `outside.call`."""
        return await call(self.lease, method, url, data, headers)

    async def fetch(self, path: str) -> tuple[int, bytes]:
        """Status and body of a GET with the visitor's cookies; the open page and the history stay as they are."""
        url = urljoin(f"{self.origin}/", path)
        if (app := self.reach.apps.get(urlsplit(url).netloc)) is None:
            return await self.call("GET", url)
        async with trouble(f"{path} could not be fetched"):
            found = await self.lease.context.cookies(url)
        cookies = [(c["path"], c["name"], c["value"]) for c in found]  # pyright: ignore
        return await TextBrowser(app, self.origin, cookies=cookies).fetch(path)

    async def close(self) -> None:
        """Gives the context back."""
        if self._lease is not None:
            lease, self._lease = self._lease, None
            lease.context.remove_listener("page", self._on_page)
            await self.host.give_back(lease, in_order=not (self.is_unread or any(t.failed for t in self._tabs)))
            self._tabs = []

    @property
    def _offset(self) -> int:
        return self._offsets.get((self._at, self.tab.seen["entry"]), 0)

    def _on_page(self, page: "Page") -> None:
        self._opened.put_nowait(page)

    def _state(self) -> tuple[str, str, int]:
        return self.tab.seen["url"], self.tab.seen["entry"], self.tab.seen["changes"]

    async def _add_tab(self) -> None:
        async with trouble("a tab could not be opened"):
            page = await self.lease.context.new_page()
            await self._opened.get()  # the context announces this one, too
            if self.script:
                await page.add_init_script(self.script)
            self._tabs.append(await Tab.attach(page))
        self._at = len(self._tabs) - 1

    async def _leave_unread(self) -> None:
        """Opens an empty tab in the place of the one in front, whose page cannot be read."""
        left, at = self._tabs.pop(self._at), self._at
        await self._add_tab()
        self._tabs.insert(at, self._tabs.pop())
        self._at = at
        with suppress(PageFailure):
            async with trouble("a tab could not be closed", OPENS):
                await left.page.close()

    async def _attempt(self, action: Coroutine[Any, Any, str | None]) -> str | None:
        """Does an action on a page. One that the page hinders from being done costs a step, not the episode."""
        try:
            return await action
        except PageFailure:
            if self._unread >= PATIENCE or not self.lease.chromium.runs:
                raise
            await self._look()
            return UNREAD if self.is_unread else "the page did not answer in time"

    async def _look(self) -> str | None:
        """Reads the page in front, which is one that was just opened in a new tab. What was refused, in words."""
        refused = await self._read()
        windows, self.tab.windows = self.tab.windows, 0
        with suppress(PageFailure):  # a window that is blocked never comes
            async with trouble("the windows did not open", OPENS):
                for _ in range(min(windows, MAX_TABS)):
                    page = await self._opened.get()
                    if len(self._tabs) >= MAX_TABS:
                        await page.close()
                        continue
                    self._tabs.append(await Tab.attach(page))
                    self._at = len(self._tabs) - 1
        if windows:
            refused = await self._read() or refused
        self._notices, self.tab.notices = self.tab.notices, []
        self._tabs = [t for t in self._tabs if not t.page.is_closed()] or self._tabs
        self._at = min(self._at, len(self._tabs) - 1)
        self._tree = None
        if self.view == "axtree" and not self.is_unread and self.tab.seen["nodes"] < MAX_NODES:
            with suppress(PageFailure):
                self._tree = await Tree.read(self.tab.cdp)
        return OUTSIDE if refused else None

    async def _read(self) -> str:
        """Has the tab in front read its page; what was refused. A page that cannot be read is shown as one line.

        Raises:
            PageFailure: the browser ended, or this was the last of `PATIENCE` looks.
        """
        try:
            refused = await self.tab.look(self.reach.sites)
        except PageFailure as e:
            if not await self.lease.chromium.answers():
                raise PageFailure("browser ended", f"the browser does not answer: {e}") from e
            self._unread += 1
            unread.add(e.cause, site_of(self.tab.page.url))
            if self._unread >= PATIENCE:
                raise PageFailure(e.cause, f"{e}, {PATIENCE} times in a row") from e
            self.tab.seen |= {"lines": [UNREAD], "title": "", "url": self.tab.page.url, "status": 0, "note": ""}
            return ""
        self._unread = 0
        return refused

    async def _call(self, name: str, *arguments: Any) -> Any:
        return await self.tab.ask(f"longstride.{name}({', '.join(map(json.dumps, arguments))})")

    async def _on(self, number: int, name: str, *arguments: Any) -> Any:
        """Calls a function of `look.js` on an element: where it is, or what is wrong with it."""
        if self.is_unread:
            return UNREAD
        if self._tree is not None:
            nodes = self._tree.nodes
            if not 1 <= number <= len(nodes):
                return f"there is no element [{number}]; this page has {f'1 to {len(nodes)}' if nodes else 'none'}"
            await self.tab.adopt(nodes[number - 1], number)
        return await self._call(name, number, *arguments)

    async def _put(self, number: int, words: str) -> str:
        """Types words over what is in a field; what is wrong with it, or ""."""
        at = await self._on(number, "fill", words)
        if isinstance(at, str):  # wrong, or done: some kinds of field have no text that keys could be typed into
            return at
        full = at.get("full")
        if full is None:  # it has not the focus yet
            await self.tab.press(at["x"], at["y"])
            full = await self._call("clear", number)
        if full and not words:
            async with trouble("the keys were not taken"):
                await self.tab.page.keyboard.press("Delete")
        await self.tab.type(words)
        return ""

    async def _point(self, what: Literal["click", "hover"], number: int) -> str | None:
        at = await self._on(number, what)
        if isinstance(at, str):
            return at
        before = self._state()
        if what == "click":
            await self.tab.press(at["x"], at["y"])
        else:
            async with trouble("the mouse was not taken"):
                await self.tab.page.mouse.move(at["x"], at["y"])
        refused = await self._look()
        if refused is None and at.get("takes_words") and what == "click" and self._state() == before:
            return f"textbox [{number}] takes words: type [{number}] words"
        return refused

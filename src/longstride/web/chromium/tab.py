"""A tab of Chromium and the isolated world in which its documents are read.

What always holds: a question is answered by the document that is open when nothing leaves it any more; waiting ends by
events or at a deadline, never by sleeping; a page that does not stand still in time is stopped and read as it is; one
that does not answer even then, or that crashed, raises `PageFailure`; text from the page has no lone surrogates.
"""

import asyncio
import json
from contextlib import suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from longstride.envs.sites.cleaning import clean, well_formed
from longstride.web.chromium.failures import PageFailure, trouble
from longstride.web.chromium.keys import strokes

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Dialog, Page, Request

WORLD = "longstride"
SCRIPT = files("longstride.web.chromium").joinpath("look.js").read_text(encoding="utf-8")
STILL = 1000
"""Milliseconds after which a page that never stands still is read as it is."""
LOOK = 12.0
"""Seconds that a page has for standing still and being read, before it is stopped."""
STOPPED = 3.0
"""Seconds that a page has for being read once it was stopped."""
ARRIVE = 8.0
"""Seconds that a document has for arriving."""
FETCHES = 3.0
"""Seconds that what a page fetches is waited for."""
HOPS = 20
"""Documents that may follow each other without the visitor's doing."""
WAITED_FOR = ("XHR", "Fetch", "Script", "Stylesheet")
NOTICES = 10
"""Dialogs of one look that are shown."""


class Tab:
    """One tab. Made by `attach`."""

    def __init__(self, page: "Page", session: "CDPSession", frame: str) -> None:
        self.page = page
        self.cdp = session
        self.failed = ""
        """Why the tab can be used no more."""
        self.notices: list[str] = []
        """The texts of dialogs since the last look; alerts are accepted, questions dismissed."""
        self.seen: dict[str, Any] = {"lines": [], "title": "", "url": page.url, "status": 0, "entry": "", "changes": 0}
        """What `longstride.look` answered last."""
        self.windows = 0
        """Windows that the page has opened since the last look."""
        self._frame = frame
        self._world = 0
        self._arrived = asyncio.Event()
        self._stayed = asyncio.Event()
        self._fetching: set[str] = set()
        self._quiet = asyncio.Event()
        self._fetched = False
        """Whether a script has fetched something that it may not have used yet."""

    @classmethod
    async def attach(cls, page: "Page") -> "Tab":
        """Takes over a page that was just opened."""
        session = await page.context.new_cdp_session(page)
        tree = await session.send("Page.getFrameTree")
        tab = cls(page, session, tree["frameTree"]["frame"]["id"])
        session.on("Runtime.executionContextCreated", tab._on_world)
        session.on("Runtime.executionContextsCleared", lambda _: tab._forget_world())
        session.on("Page.navigatedWithinDocument", lambda _: tab._stayed.set())
        session.on("Page.windowOpen", tab._on_window)
        page.on("crash", lambda _: tab._end("the tab crashed"))
        page.on("close", lambda _: tab._end("the tab was closed"))
        # of this session, whose events come in order with its answers: a fetch is known before a look that comes after
        session.on("Network.requestWillBeSent", tab._on_request)
        session.on("Network.loadingFinished", tab._on_response)
        session.on("Network.loadingFailed", tab._on_response)
        page.on("requestfailed", tab._on_failure)
        page.on("dialog", tab._on_dialog)
        script = {"source": SCRIPT, "worldName": WORLD, "runImmediately": True}
        await asyncio.gather(
            session.send("Page.enable"),
            session.send("Runtime.enable"),
            session.send("Network.enable"),
            session.send("Page.addScriptToEvaluateOnNewDocument", script),
        )
        return tab

    async def look(self, sites: list[str]) -> str:
        """Waits until the page stands still and reads it into `seen`; the site that the page was refused, or "".

        Raises:
            PageFailure: the tab crashed, or the page does not answer.
        """
        reason, refused, settled = f"it was stopped after {LOOK:g} s", "", False
        try:
            async with asyncio.timeout(LOOK):
                for _ in range(HOPS):
                    # once a look: a page that fetches again and again is read between two of its fetches
                    settle, settled = self._fetched and not settled, settled or self._fetched
                    self._fetched = False
                    expression = f"longstride.look({json.dumps(sites)}, {STILL}, {json.dumps(settle)})"
                    seen, refused = await self._look_once(expression, refused, settled)
                    if seen is not None:
                        self.seen = seen
                        return refused
                reason = "it sends its visitor on without end"
        except (TimeoutError, PageFailure):
            if self.failed:
                raise PageFailure("tab crashed", self.failed) from None
        self.seen = await self._read_stopped(f"longstride.read({json.dumps(sites)})")
        self.seen["lines"].append(f"the page was cut here: {reason}")
        return refused or self.seen["refused"]

    async def _look_once(self, expression: str, refused: str, settled: bool) -> tuple[dict[str, Any] | None, str]:
        """What is seen where nothing leaves the document any more, and, unless the page had its frame for that
        (`settled`), nothing was fetched; else None. And what was refused so far."""
        look = asyncio.ensure_future(self._ask(expression, again=True))
        try:
            if not (await asyncio.wait({look}, timeout=ARRIVE))[0]:  # no answer while a document is awaited
                await self._try("Page.stopLoading")
            seen, world = await look
        finally:
            look.cancel()
        refused = refused or seen["refused"]
        if seen["leaving"]:
            await self._wait_for_document(world)
        elif self._fetching or (self._fetched and not settled):
            with suppress(TimeoutError):
                async with asyncio.timeout(FETCHES):
                    await self._quiet.wait()
            self._fetching.clear()
        else:
            return seen, refused
        return None, refused

    async def _read_stopped(self, expression: str) -> dict[str, Any]:
        """What is seen after loading and scripts were stopped. A stop that finds no script running stops the next one,
        which may be ours: so there are two tries."""
        await self._try("Page.stopLoading")
        await self._try("Runtime.terminateExecution")
        for _ in range(2):
            with suppress(TimeoutError, PageFailure):
                async with asyncio.timeout(STOPPED):
                    return (await self._ask(expression, again=True))[0]
        raise PageFailure("tab crashed" if self.failed else "no answer", f"{self.page.url[:200]} cannot be read")

    async def _try(self, method: str) -> None:
        """Sends a command that may remain without an answer."""
        with suppress(PageFailure):
            async with trouble(method, STOPPED):
                await self.cdp.send(method)

    async def ask(self, expression: str) -> Any:
        """The value of an expression in the isolated world.

        Raises:
            PageFailure: the tab crashed, the document went away, or there was no answer.
        """
        self._stayed.clear()
        async with trouble(f"{self.page.url[:200]} did not answer"):
            return (await self._ask(expression, again=False))[0]

    async def adopt(self, node: int, number: int) -> None:
        """Makes a node of the accessibility tree (its backend id) element `number` until the next look."""
        async with trouble("the element is gone"):
            found = await self.cdp.send("DOM.resolveNode", {"backendNodeId": node, "executionContextId": self._world})
            await self.cdp.send(
                "Runtime.callFunctionOn",
                {
                    "functionDeclaration": "function(n) { longstride.adopt(n, this) }",
                    "objectId": found["object"]["objectId"],
                    "arguments": [{"value": number}],
                },
            )

    async def press(self, x: float, y: float) -> None:
        """Moves the mouse to a place and presses its left button. Nothing is waited for in between: a move alone is
        answered at the display's next frame, up to 17 ms later, one with a press behind it at once."""
        at = {"x": x, "y": y, "button": "left", "clickCount": 1}
        events = [{"x": x, "y": y, "type": "mouseMoved"}, at | {"type": "mousePressed"}, at | {"type": "mouseReleased"}]
        async with trouble("the mouse was not taken"):
            await asyncio.gather(*[self.cdp.send("Input.dispatchMouseEvent", e) for e in events])

    async def type(self, words: str) -> None:
        """Types words where the focus is. No stroke waits for the one before it: Chromium takes them in order."""
        async with trouble("the keys were not taken"):
            for group in strokes(words):
                await asyncio.gather(*[self.cdp.send(method, given) for method, given in group])

    async def go(self, url: str) -> str:
        """Loads an address; what went wrong, or ""."""
        world, given = self._world, {}
        self._stayed.clear()
        self._forget_world()
        try:
            async with trouble(f"{url[:200]} could not be opened", ARRIVE):
                given = await self.cdp.send("Page.navigate", {"url": url})
            error = given.get("errorText", "")
        except PageFailure as e:
            if e.cause != "no answer":
                raise
            await self._try("Page.stopLoading")
            error = f"no answer within {ARRIVE:g} s"
        if error or not given.get("loaderId"):
            self._stayed.set()
        await self._wait_for_document(world)
        return error

    async def traverse(self, by: int) -> bool:
        """Goes `by` entries along the tab's history; False where it ends."""
        async with trouble("the tab's history could not be used"):
            history = await self.cdp.send("Page.getNavigationHistory")
            at = history["currentIndex"] + by
            if not 0 <= at < len(history["entries"]) or history["entries"][at]["url"] == "about:blank":
                return False
            world = self._world
            self._stayed.clear()
            self._forget_world()
            await self.cdp.send("Page.navigateToHistoryEntry", {"entryId": history["entries"][at]["id"]})
        await self._wait_for_document(world)
        return True

    async def _ask(self, expression: str, again: bool) -> tuple[Any, int]:
        """A value, and the world it came from; with `again` another document may answer for one that went away."""
        from playwright.async_api import Error

        asked = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        while True:
            await self._arrived.wait()
            if self.failed:
                raise PageFailure("tab crashed", f"{self.failed} at {self.seen['url'][:200]}")
            world = self._world
            try:
                given = await self.cdp.send("Runtime.evaluate", {**asked, "contextId": world})
            except Error as e:
                if self.failed or not again:
                    raise PageFailure("other", f"{self.page.url[:200]} did not answer: {str(e)[:200]}") from e
                if self._world == world:  # this error comes before the news of the document's end
                    self._forget_world()
                continue
            if "exceptionDetails" in given:
                raise PageFailure("other", f"the page could not be read: {str(given['exceptionDetails'])[:300]}")
            return well_formed(given["result"].get("value")), world

    async def _wait_for_document(self, old: int) -> None:
        """Waits for the document that replaces the one of world `old`, or until it is clear that none does."""
        if self._world == old:
            self._forget_world()
        waits = [asyncio.ensure_future(e.wait()) for e in (self._arrived, self._stayed)]
        try:
            await asyncio.wait(waits, timeout=ARRIVE, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if not self._arrived.is_set() and old:
            self._world = old
            self._arrived.set()
            with suppress(TimeoutError, PageFailure):
                async with asyncio.timeout(STOPPED):
                    await self._ask("longstride.stay()", again=True)

    def _on_world(self, event: dict[str, Any]) -> None:
        context = event["context"]
        if context["name"] == WORLD and context.get("auxData", {}).get("frameId") == self._frame:
            self._world = context["id"]
            self._arrived.set()

    def _on_window(self, _: Any) -> None:
        self.windows += 1

    def _forget_world(self) -> None:
        self._world = 0
        if not self.failed:
            self._arrived.clear()

    def _end(self, why: str) -> None:
        self.failed = self.failed or why
        for event in (self._arrived, self._stayed, self._quiet):
            event.set()

    def _on_request(self, event: dict[str, Any]) -> None:
        # the script of a worker has no loader: its end is not told here
        if event.get("type") in WAITED_FOR and event["loaderId"]:
            self._fetching.add(event["requestId"])
            self._fetched = self._fetched or event["type"] in ("XHR", "Fetch")
            self._quiet.clear()

    def _on_response(self, event: dict[str, Any]) -> None:
        self._fetching.discard(event["requestId"])
        if not self._fetching:
            self._quiet.set()

    def _on_failure(self, request: "Request") -> None:
        if request.is_navigation_request():  # a download, or an answer without a page
            self._stayed.set()

    async def _on_dialog(self, dialog: "Dialog") -> None:
        if len(self.notices) < NOTICES:
            self.notices.append(f"{dialog.type}: {clean(dialog.message[:2000])[:200]}")
        with suppress(Exception):  # the page may be gone by now
            await (dialog.accept() if dialog.type in ("alert", "beforeunload") else dialog.dismiss())

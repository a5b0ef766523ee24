"""A tab of Chromium and the isolated world in which its documents are read.

What always holds: what is asked is answered by the document that is open when nothing leaves it any more; waiting ends
by events or at a deadline, never by sleeping; a tab that crashed or does not answer raises `EnvFailure`.
"""

import asyncio
import json
from contextlib import suppress
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from longstride.core.errors import EnvFailure
from longstride.web.chromium.host import trouble
from longstride.web.chromium.keys import strokes

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Dialog, Page, Request

WORLD = "longstride"
SCRIPT = files("longstride.web.chromium").joinpath("look.js").read_text(encoding="utf-8")
STILL = 1000
"""Milliseconds after which a page that never stands still is read as it is."""
ARRIVE = 10.0
"""Seconds that a document has for arriving."""
FETCHES = 3.0
"""Seconds that what a page fetches is waited for."""
HOPS = 20
"""Documents that may follow each other without the visitor's doing."""
WAITED_FOR = ("XHR", "Fetch", "Script", "Stylesheet")


class Tab:
    """One tab. Made by `attach`."""

    def __init__(self, page: "Page", session: "CDPSession", frame: str) -> None:
        self.page = page
        self.cdp = session
        self.failed = ""
        """Why the tab can be used no more."""
        self.notices: list[str] = []
        """What dialogs said since the last look; alerts are accepted, questions dismissed."""
        self.seen: dict[str, Any] = {"lines": [], "title": "", "url": page.url, "status": 0, "entry": "", "changes": 0}
        """What `longstride.look` told last."""
        self.windows = 0
        """Windows that the page has opened since the last look."""
        self._frame = frame
        self._world = 0
        self._arrived = asyncio.Event()
        self._stayed = asyncio.Event()
        self._fetching: set[str] = set()
        self._quiet = asyncio.Event()

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

    async def look(self, hosts: list[str]) -> str:
        """Waits until the page stands still and reads it into `seen`; the host that the page was refused, or ""."""
        refused = ""
        for _ in range(HOPS):
            look = asyncio.ensure_future(self._ask(f"longstride.look({json.dumps(hosts)}, {STILL})", again=True))
            try:
                if not (await asyncio.wait({look}, timeout=ARRIVE))[0]:  # no answer while a document is awaited
                    with suppress(EnvFailure):
                        async with trouble("the document that does not arrive could not be given up"):
                            await self.cdp.send("Page.stopLoading")
                told, world = await look
            finally:
                look.cancel()
            refused = refused or told["refused"]
            if told["leaving"]:
                await self._wait_for_document(world)
            elif self._fetching:
                with suppress(TimeoutError):
                    async with asyncio.timeout(FETCHES):
                        await self._quiet.wait()
                self._fetching.clear()
            else:
                self.seen = told
                return refused
        raise EnvFailure(f"{self.page.url} sends its visitor on without end")

    async def ask(self, expression: str) -> Any:
        """The value of an expression in the isolated world.

        Raises:
            EnvFailure: the tab crashed, the document went away, or there was no answer.
        """
        self._stayed.clear()
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
        async with trouble(f"{url} could not be opened"):
            given = await self.cdp.send("Page.navigate", {"url": url})
        error = given.get("errorText", "")
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
        async with trouble(f"{self.page.url} did not answer"):
            while True:
                await self._arrived.wait()
                if self.failed:
                    raise EnvFailure(f"{self.failed} at {self.seen['url']}")
                world = self._world
                try:
                    given = await self.cdp.send("Runtime.evaluate", {**asked, "contextId": world})
                except Error:
                    if self.failed or not again:
                        raise
                    if self._world == world:  # this error comes before the news of the document's end
                        self._forget_world()
                    continue
                if "exceptionDetails" in given:
                    raise EnvFailure(f"the page could not be read: {str(given['exceptionDetails'])[:300]}")
                return given["result"].get("value"), world

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
            with suppress(EnvFailure):
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
        if event.get("type") in WAITED_FOR:
            self._fetching.add(event["requestId"])
            self._quiet.clear()

    def _on_response(self, event: dict[str, Any]) -> None:
        self._fetching.discard(event["requestId"])
        if not self._fetching:
            self._quiet.set()

    def _on_failure(self, request: "Request") -> None:
        if request.is_navigation_request():  # a download, or an answer without a page
            self._stayed.set()

    async def _on_dialog(self, dialog: "Dialog") -> None:
        self.notices.append(f"{dialog.type}: {' '.join(dialog.message.split())[:200]}")
        with suppress(Exception):  # the page may be gone by now
            await (dialog.accept() if dialog.type in ("alert", "beforeunload") else dialog.dismiss())

"""A browser without a screen: drives an ASGI application in process, one page at a time.

What always holds: only the application is reached (no socket is opened; an address outside of the origin is refused,
in links, forms and redirects alike); an action returns None, or one sentence that explains why it had no effect; `back`
shows the page of an earlier GET as it was left, without a request; an exception of the application is an `EnvFailure`,
a response with an error status is a page. Scripts, style sheets, anchors and file uploads are not supported.
"""

import asyncio
import email.utils
import html
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit

from longstride.core.errors import EnvFailure
from longstride.envs.sites.cleaning import clean
from longstride.envs.sites.page import Form, PageElement, WebPage

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]
MAX_REDIRECTS = 10
MAX_RESPONSE = 8_000_000  # bytes; more is a failure of the application
MAX_ADDRESS = 8000  # characters
MAX_COOKIE = 4096  # characters; a longer one is not kept
MAX_COOKIES = 50  # the oldest go first
MAX_HISTORY = 50
MAX_PLAIN = 2000  # bytes shown of an answer that is text but not HTML
OUTSIDE = "this address is outside of the site"
_SAFE = "/%:@!$&'()*+,;=-._~?"  # what stays as it is in paths and queries
_PLAIN = re.compile(r"/(?![/.])(?:/(?!\.)|[\w%:@!$&'()*+,;=.~-])*(?:\?[\w/%:@!$&'()*+,;=.~?-]*)?", re.ASCII)
"""A path and query that need no joining, quoting or looking at."""
_FORM = (b"content-type", b"application/x-www-form-urlencoded")


@dataclass(slots=True)
class SiteResponse:
    """What the application answered."""

    status: int
    content_type: str
    location: str
    body: bytes


class TextBrowser:
    """One visitor: cookies, history and the page that is open."""

    def __init__(
        self,
        app: Application,
        origin: str = "http://sites.test",
        window: int = 60,
        cookies: Iterable[tuple[str, str, str]] = (),
    ) -> None:
        """`window`: lines of a page that are seen at once; `cookies`: path, name and value of those that it begins
        with."""
        self.app, self.origin, self.window = app, origin.rstrip("/"), window
        parts = urlsplit(self.origin)
        self._host = parts.netloc.lower()
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": parts.scheme,
            "server": (parts.hostname, parts.port or 80),
            "client": ("127.0.0.1", 1),
            "root_path": "",
        }
        self._headers = [(b"host", self._host.encode()), (b"accept", b"text/html,*/*")]
        self._cookies = {(path, name): (value, math.inf) for path, name, value in cookies}  # value and time of expiry
        self._history: list[tuple[WebPage, int]] = []
        self._first: str | None = None
        self._kept = False  # whether `back` may come to the open page again
        self.page, self.offset, self.status = WebPage(b"", "/"), 0, 0

    @property
    def url(self) -> str:
        """Full address of the open page."""
        return self.origin + self.page.url

    def text(self) -> str:
        """The window over the open page."""
        return self.page.text(self.offset, self.window)

    async def open(self, url: str) -> str | None:
        """Goes to an address (full, or a path); `home` comes back to the first one."""
        if self._first is None:
            self._first = url
        return await self._go(url)

    async def goto(self, url: str) -> str | None:
        return await self._go(url)

    async def home(self) -> str | None:
        return await self._go(self._first or "/")

    async def back(self) -> str | None:
        if not self._history:
            return "there is no page before this one"
        self.page, self.offset = self._history.pop()
        self._kept = True
        return None

    async def scroll(self, down: bool) -> str | None:
        at = self.offset + (self.window if down else -self.window)
        if at < 0:
            return "this is the top of the page"
        if at >= len(self.page.layout.text):
            return "this is the end of the page"
        self.offset = at
        return None

    async def click(self, number: int) -> str | None:
        """Follows the link, presses the button, toggles the box."""
        element = self._element(number)
        if isinstance(element, str):
            return element
        state = self.page.state
        match element.role:
            case "link":
                return await self._go(element.value)
            case "button":
                return await self._press(element)
            case "checkbox":
                state[number] = element.value if self.page.value(element) is None else None
            case "radio":
                for other in self.page.layout.elements:
                    if (other.role, other.key, other.form) == ("radio", element.key, element.form):
                        state[other.number] = None
                state[number] = element.value
            case "select":
                return f"select [{number}] is set with: select [{number}] option"
            case "textbox":
                return f"textbox [{number}] takes words: type [{number}] words"
            case _:
                return f"{element.role} [{number}] does nothing when clicked"
        return None

    async def fill(self, number: int, words: str) -> str | None:
        """Puts words into a text field."""
        element = self._element(number)
        if isinstance(element, str):
            return element
        if element.role != "textbox":
            return f"[{number}] is a {element.role}, not a textbox"
        if element.note:
            return f"textbox [{number}] is {element.note}"
        self.page.state[number] = words
        return None

    async def type(self, number: int, words: str) -> str | None:
        """Puts words into a text field and presses Enter: HTML's implicit submission."""
        if error := await self.fill(number, words):
            return error
        element = self.page.layout.elements[number - 1]
        if element.kind == "textarea":
            return None  # Enter is a line break there
        controls = [c for c in self.page.layout.controls if c.form is element.form]
        button = next((c for c in controls if c.role == "button" and c.kind == "submit"), None)
        if element.form is None:
            return f"textbox [{number}] was filled, but Enter does nothing there"
        if button is None and sum(c.role == "textbox" and c.kind != "textarea" for c in controls) > 1:
            return f"textbox [{number}] was filled, but Enter does not submit this form"
        if button is not None and button.note == "disabled":
            return f"textbox [{number}] was filled, but the form's button is disabled"
        return await self._submit(element.form, button)

    async def select(self, number: int, option: str) -> str | None:
        """Chooses an option by its label, else by its value; case does not count."""
        element = self._element(number)
        if isinstance(element, str):
            return element
        if element.role != "select":
            return f"[{number}] is a {element.role}, not a select"
        wanted = clean(option).lower()
        open_to = [(label, value) for label, value, free in element.options if free]
        by_label = [value for label, value in open_to if label.lower() == wanted]
        by_value = [value for _, value in open_to if value.lower() == wanted]
        if found := by_label + by_value:
            self.page.state[number] = found[0]
            return None
        return f"select [{number}] has no option {wanted[:50]!r}; it has {element.choices()}"

    async def wait(self) -> None:
        """Nothing changes here by itself."""

    async def hover(self, number: int) -> str | None:
        return "there is no mouse here"

    async def new_tab(self) -> str | None:
        return "there is only one tab here"

    async def switch_tab(self, number: int) -> str | None:
        return await self.new_tab()

    async def fetch(self, path: str) -> tuple[int, bytes]:
        """Status and body of a GET with the visitor's cookies; the open page and the history stay as they are."""
        found = self._resolve(path, "/")
        if found is None:
            raise EnvFailure(f"cannot fetch {path!r}: {OUTSIDE} {self.origin}")
        response = await self._request("GET", *found, b"")
        return response.status, response.body

    def _element(self, number: int) -> PageElement | str:
        """The element of a number that can be used, or what is wrong with it."""
        elements = self.page.layout.elements
        if not 1 <= number <= len(elements):
            return f"there is no element [{number}]; this page has {f'1 to {len(elements)}' if elements else 'none'}"
        element = elements[number - 1]
        return f"{element.role} [{number}] is disabled" if element.note == "disabled" else element

    async def _press(self, button: PageElement) -> str | None:
        if button.form is None or button.kind == "button":
            return f"button [{button.number}] does nothing"
        if button.kind == "submit":
            return await self._submit(button.form, button)
        for c in self.page.layout.controls:
            if c.form is button.form:
                self.page.state.pop(c.number, None)
        return None

    async def _submit(self, form: Form, button: PageElement | None) -> str | None:
        data = urlencode(self.page.entries(form, button), errors="replace")
        action = form.action.partition("#")[0] or self.page.url
        if form.post:
            return await self._go(action, "POST", data.encode())
        return await self._go(f"{action.partition('?')[0]}?{data}")

    async def _go(self, url: str, method: str = "GET", body: bytes = b"") -> str | None:
        """Opens the page at an address, over redirects."""
        at = self.page.url
        for redirects in range(MAX_REDIRECTS + 1):
            if len(url) > MAX_ADDRESS:
                return f"this address has more than {MAX_ADDRESS} characters"
            url, anchor, _ = url.partition("#")
            found = self._resolve(url, at)
            if found is None:
                return OUTSIDE
            path, query = found
            at = f"{path}?{query}" if query else path
            if anchor and not redirects and at == self.page.url:
                self.offset = 0
                return None
            response = await self._request(method, path, query, body)
            if response.status not in (301, 302, 303, 307, 308) or not response.location:
                self._show(response, at, kept=method == "GET")
                return None
            url = response.location
            if response.status < 307:
                method, body = "GET", b""
        return f"the site redirects more than {MAX_REDIRECTS} times"

    def _resolve(self, url: str, base: str) -> tuple[str, str] | None:
        """Path and query, as they are sent, of an address in the page at `base`; None where that is outside."""
        if _PLAIN.fullmatch(url):
            path, _, query = url.partition("?")
            return path, query
        try:
            parts = urlsplit(urljoin(self.origin + base, url.strip().replace("\\", "/")))
        except ValueError:
            return None
        if f"{parts.scheme}://{parts.netloc.lower()}" != self.origin:
            return None
        return quote(parts.path or "/", _SAFE, errors="replace"), quote(parts.query, _SAFE, errors="replace")

    def _show(self, response: SiteResponse, url: str, kept: bool) -> None:
        """Makes an answer the open page; the one before goes into the history."""
        kind = response.content_type.partition(";")[0].strip().lower()
        body: str | bytes = response.body
        if kind.startswith("text/") and kind != "text/html" or kind.endswith("json"):
            start = response.body[:MAX_PLAIN].decode("utf-8", "replace")
            body = "<br>".join(html.escape(line) for line in start.splitlines())
        elif kind not in ("", "text/html", "application/xhtml+xml"):
            body = f"<p>a file of type {html.escape(kind)}, {len(response.body)} bytes"
        page = WebPage(body, url, f"status {response.status}" if response.status >= 400 else "")
        if self._kept and not (kept and url == self.page.url):  # the same address again takes its place
            self._history.append((self.page, self.offset))
            del self._history[:-MAX_HISTORY]
        self.page, self.offset, self.status, self._kept = page, 0, response.status, kept

    async def _request(self, method: str, path: str, query: str, body: bytes) -> SiteResponse:
        """Calls the application. Raises: EnvFailure for its exceptions, no answer, or one beyond all measure."""
        headers = self._headers
        if cookie := self._cookie_header(path):
            headers = [*headers, (b"cookie", cookie.encode("latin-1", "replace"))]
        if method == "POST":
            headers = [*headers, _FORM, (b"content-length", b"%d" % len(body))]
        scope = self._scope | {
            "method": method,
            "path": unquote(path) if "%" in path else path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": headers,
        }
        response, read, done = SiteResponse(0, "", "", b""), False, asyncio.Event()
        chunks, size = [], 0

        async def receive() -> Message:
            nonlocal read
            if read:
                await done.wait()
                return {"type": "http.disconnect"}
            read = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            nonlocal size
            if message["type"] == "http.response.start":
                response.status = message["status"]
                for name, value in message.get("headers", ()):
                    if name == b"content-type":
                        response.content_type = value.decode("latin-1")
                    elif name == b"location":
                        response.location = value.decode("utf-8", "replace")
                    elif name == b"set-cookie":
                        self._set_cookie(value.decode("latin-1"), path)
            elif message["type"] == "http.response.body":
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                if size > MAX_RESPONSE:
                    raise EnvFailure(f"the site answered {method} {path} with more than {MAX_RESPONSE} bytes")
                if not message.get("more_body", False):
                    done.set()

        try:
            await self.app(scope, receive, send)
        except EnvFailure:
            raise
        except (Exception, SystemExit) as e:  # whatever the application raises is trouble of the application
            raise EnvFailure(f"the site failed at {method} {path}: {type(e).__name__}: {e}") from e
        if not response.status:
            raise EnvFailure(f"the site did not answer {method} {path}")
        response.body = b"".join(chunks)
        return response

    def _cookie_header(self, path: str) -> str:
        if not self._cookies:
            return ""
        now = time.time()
        sent = []
        for (where, name), (value, expires) in self._cookies.items():
            if expires > now and (path == where or path.startswith(where if where[-1] == "/" else where + "/")):
                sent.append((-len(where), f"{name}={value}"))
        return "; ".join(pair for _, pair in sorted(sent))

    def _set_cookie(self, header: str, path: str) -> None:
        """RFC 6265, section 5.3; `Secure` is taken as fulfilled, for nothing leaves the process."""
        if len(header) > MAX_COOKIE:
            return
        pair, *attributes = header.split(";")
        name, equals, value = pair.partition("=")
        given = {k.strip().lower(): v.strip() for k, _, v in (a.partition("=") for a in attributes)}
        domain = given.get("domain", "").lstrip(".").lower()
        host = self._host.partition(":")[0]
        if not equals or (domain and host != domain and not host.endswith("." + domain)):
            return
        where = given.get("path", "")
        if not where.startswith("/"):
            where = path.rpartition("/")[0] or "/"
        self._cookies.pop((where, name.strip()), None)
        expires = _expiry(given)
        if expires > time.time():
            self._cookies[where, name.strip()] = (value.strip(), expires)
            if len(self._cookies) > MAX_COOKIES:
                del self._cookies[next(iter(self._cookies))]


def _expiry(attributes: dict[str, str]) -> float:
    """Time when a cookie ends; what cannot be read counts as not given."""
    try:
        if "max-age" in attributes:
            return time.time() + float(attributes["max-age"])
        if "expires" in attributes:
            return email.utils.parsedate_to_datetime(attributes["expires"]).timestamp()
    except (ValueError, OverflowError):
        pass
    return math.inf

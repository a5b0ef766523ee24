"""What an evaluator does with a visitor's context besides the visit: scripts on pages, and requests without a page.

What always holds: only what the visitor may contact is contacted; an answer is read up to a bound.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from longstride.core.errors import EnvFailure
from longstride.envs.sites.browser import MAX_RESPONSE
from longstride.envs.sites.cleaning import well_formed
from longstride.web.chromium.failures import PageFailure, trouble
from longstride.web.chromium.host import Lease
from longstride.web.chromium.reach import site_of
from longstride.web.chromium.tab import ARRIVE, STOPPED

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

Run = Callable[..., Awaitable[Any]]
"""A JavaScript function and its arguments to its result; None where it raises or does not answer."""


@asynccontextmanager
async def on_page(page: "Page") -> AsyncIterator[Run]:
    """Runs JavaScript on a page that is open."""
    from playwright.async_api import Error

    async def run(function: str, *argument: Any) -> Any:
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(ARRIVE):
                return well_formed(await page.evaluate(function, *argument))

    yield run


@asynccontextmanager
async def aside(context: "BrowserContext", opened: "asyncio.Queue[Page]", url: str) -> AsyncIterator[Run]:
    """Runs JavaScript on a page of its own, which is then closed.

    Args:
        context: in which the page is opened.
        opened: where the context announces new pages.
        url: what is opened.

    Raises:
        PageFailure: the page did not open.
    """
    async with trouble(f"{url} could not be opened"):
        page = await context.new_page()
    try:
        async with trouble(f"{url} could not be opened", ARRIVE):
            await opened.get()
            await page.goto(url, wait_until="load", timeout=1000 * ARRIVE)
        async with on_page(page) as run:
            yield run
    finally:
        with suppress(PageFailure):
            async with trouble(f"{url} could not be closed", STOPPED):
                await page.close()


async def call(lease: Lease, method: str, url: str, data: Any, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Status and body (its first `MAX_RESPONSE` bytes) of the response to a request from outside of any page, with the
    visitor's cookies, at the address that the browser has for the site.

    Raises:
        EnvFailure: the site is none that may be contacted, or there was no response.
    """
    import httpx2

    address, *_ = await lease.gateway.addresses(site_of(url))
    async with trouble(f"the cookies of {url} could not be read"):
        cookies = {c["name"]: c["value"] for c in await lease.context.cookies(url)}  # pyright: ignore
    parts, body = urlsplit(url), bytearray()
    sent = dict(headers) | {"Host": parts.netloc, "Accept-Encoding": "identity"}
    named: dict[str, Any] = {"extensions": {"sni_hostname": parts.hostname}}
    try:
        async with (
            asyncio.timeout(ARRIVE),
            httpx2.AsyncClient(trust_env=False, timeout=None, cookies=cookies) as client,
            client.stream(
                method, httpx2.URL(url).copy_with(host=address), json=data, headers=sent, **named
            ) as response,
        ):
            async for chunk in response.aiter_raw(1 << 16):
                body += chunk
                if len(body) >= MAX_RESPONSE:
                    break
    except (httpx2.HTTPError, TimeoutError) as e:
        raise EnvFailure(f"{url} could not be called: {type(e).__name__} {e}") from e
    return response.status_code, bytes(body[:MAX_RESPONSE])

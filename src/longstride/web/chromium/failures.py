"""What goes wrong with pages: named by its cause and its site, and counted, so that no site can choose in silence which
episodes leave the sample.

What always holds: everything that Playwright raises, and no answer in time, becomes a `PageFailure`; `dropped` counts
the episodes that ended as one, `unread` the pages that a policy was shown as not readable.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from longstride.core.errors import EnvFailure

Cause = Literal["no answer", "tab crashed", "browser ended", "not opened", "other"]
ANSWER = 10.0
"""Seconds that the browser or a page has for answering anything."""
_log = logging.getLogger(__name__)


class PageFailure(EnvFailure):
    """Trouble with a page or the browser."""

    def __init__(self, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause: Cause = cause


class SiteCounter:
    """How often something happened, by cause and site."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.by_cause_and_site: Counter[tuple[Cause, str]] = Counter()

    def add(self, cause: Cause, site: str) -> None:
        """Counts one, and logs how many there were."""
        self.by_cause_and_site[cause, site] += 1
        _log.warning("%s: %s at %s, %d times", self.what, cause, site, self.by_cause_and_site[cause, site])


dropped = SiteCounter("episode dropped")
unread = SiteCounter("page not read")


@asynccontextmanager
async def trouble(what: str, seconds: float | None = None) -> AsyncIterator[None]:
    """Turns whatever Playwright raises, or no answer within `seconds` (`ANSWER` if left out), into a `PageFailure` that
    says what was done."""
    from playwright.async_api import Error

    try:
        seconds = ANSWER if seconds is None else seconds
        async with asyncio.timeout(seconds):
            yield
    except Error as e:
        first = (str(e).splitlines() or [type(e).__name__])[0]
        cause: Cause = "browser ended" if "has been closed" in first else "other"
        raise PageFailure(cause, f"{what}: {first}") from e
    except TimeoutError as e:
        raise PageFailure("no answer", f"{what}: no answer within {seconds:g} s") from e

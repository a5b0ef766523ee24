"""Addresses of servers, as settings."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

_HOST = re.compile(r"[0-9a-f.]*:[0-9a-f:.]*|[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")


def _address(url: str) -> str:
    parts = urlsplit(url)
    if (
        parts.scheme not in ("http", "https")
        or not _HOST.fullmatch(parts.hostname or "")
        or not re.fullmatch(r"[!-~]+", url)
        or re.search("[@?#]", url)
    ):
        raise ValueError("expected an address such as http://127.0.0.1:8000/v1, without a user, a query or a fragment")
    _ = parts.port  # raises where it is no port
    return url.rstrip("/")


Address = Annotated[str, AfterValidator(_address)]
"""Where a server's interface begins, without a slash at its end."""

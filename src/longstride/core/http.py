"""What the clients of model servers share: addresses, keys and certificates. No request is sent here."""

import functools
import os
import re
import ssl
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from longstride.core.errors import ConfigError

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


def key_in(variable: str | None, where: str) -> str:
    """The key that an environment variable holds; empty where none is named.

    Raises:
        ConfigError: it holds none; `where` is the setting that names the variable.
    """
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    # the library's complaint about a header that cannot be sent would show the key
    if not re.fullmatch("[!-~]+", key):
        came = "something that cannot be sent" if key else "nothing"
        raise ConfigError(
            f"{where}: the environment variable {variable!r} holds {came}; expected a key of ASCII characters "
            "without spaces: set it, or leave key_env out for a server that needs none"
        )
    return key


@functools.cache
def tls() -> ssl.SSLContext:
    """Made once: it takes longer than a request to a near server."""
    import httpx2

    return httpx2.create_ssl_context()

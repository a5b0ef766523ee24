"""Keys and passwords of the environment: they stand in no message, and in no file of a run.

What always holds: a value counts as a secret by the name of its variable (`..._KEY`, `..._TOKEN`, `..._SECRET`,
`..._PASSWORD`), and by its length, for a short one may be any word.
"""

import os
import re
from collections.abc import Iterator

SHORTEST = 16
"""Characters of a secret, at least."""
_NAMED = re.compile(r"(^|_)(key|token|secret|password)$", re.I)
_IN_ADDRESS = re.compile(r"(\w://)[^/\s:@]+:[^/\s@]+@")


def hidden(text: str) -> str:
    """A text without the secrets of the environment, and without user and password of addresses."""
    for _, value in _secrets():
        text = text.replace(value, "***")
    return _IN_ADDRESS.sub(r"\1***@", text)


def secret_in(text: str) -> str | None:
    """The name of a variable of the environment whose secret stands in a text."""
    return next((name for name, value in _secrets() if value in text), None)


def _secrets() -> Iterator[tuple[str, str]]:
    for name, value in os.environ.items():
        if len(value) >= SHORTEST and _NAMED.search(name):
            yield name, value

"""Somebody else's code as part of an environment: what it raises, returns and prints.

What always holds: an exception of a library, a game or a server becomes an `EnvFailure` in one line that says who
raised it and where; a value of the wrong type is named with what was expected; texts are cut to a length that a prompt
can hold.
"""

import math
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from longstride.core.errors import EnvFailure, LongstrideError, short

MAX_TEXT = 20_000
"""Characters of an observation that are kept: some 5,000 tokens."""
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Raises: EnvFailure for whatever is raised inside, in one line: `what`, the exception, and the line of code."""
    try:
        yield
    except LongstrideError:
        raise
    except Exception as e:  # a library raises whatever it comes across
        raise EnvFailure(f"{what} raised {raised(e)}") from e


def raised(error: BaseException) -> str:
    """An exception in one line: `ValueError: bad move (game.py, line 12)`."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    said = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}{': ' if said else ''}{said}{place}"


def number(value: Any, what: str) -> float:
    """A finite number.

    Raises:
        EnvFailure: it is none; `what` says whose.
    """
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise EnvFailure(f"{what}: expected a finite number, got {short(value)}")
    return found


def bounded(text: str, limit: int = MAX_TEXT) -> str:
    """A text without terminal colours and halves of characters, of at most so many characters; what is left out is said
    at its end."""
    plain = _TERMINAL.sub("", text).encode(errors="replace").decode()
    return plain if len(plain) <= limit else f"{plain[:limit]}\n({len(plain) - limit} characters left out)"

"""What others say and do: servers, and libraries, games and environments as part of an environment.

What always holds: everything that a server says is read here before anything else looks at it, and what comes out can
be shown, tokenised, stored and added up. It is of bounded size and depth, its texts are plain (`core.plain`), and its
numbers are finite where a number is asked for. What does not fit is one sentence that says what was expected and what
came. An exception of somebody else's code becomes an `EnvFailure` in one line that says who raised it and where.

So whatever a stranger says costs his own episode and nothing else.
"""

import asyncio
import errno
import json
import math
import os
import stat
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from longstride.core.content import Chunk, Content, chunks_of, joined
from longstride.core.errors import EnvFailure, LongstrideError, short
from longstride.core.plain import plain

MAX_TEXT = 20_000
"""Characters of an observation that are kept: some 5,000 tokens."""
MEDIA = 200
"""Characters that an image or a piece of data counts as: it takes as many tokens as a short text."""
MAX_VALUES = 100_000
"""Values of one message: ten times what can be shown of it."""
MAX_DEPTH = 64
"""Brackets around a value."""
LARGEST = 1e15
"""Of a number: sums of squares of such numbers are finite in single precision too."""


class UnreadableError(ValueError):
    """What came is no data that is read; the message says why, as the end of a sentence."""


class NoJSONError(UnreadableError):
    """What came is no JSON at all."""


def read_json(data: str | bytes, finite: bool = False) -> Any:
    """JSON as data, its texts plain. NaN and infinity, which are not JSON and which many libraries write, are read
    unless all numbers have to be finite.

    Raises:
        NoJSONError: it is no JSON.
        UnreadableError: it has more than `MAX_VALUES` or `MAX_DEPTH`, a whole number of more digits than Python reads
            (4,300), or a number that has to be finite and is not.
    """
    text, real = data.decode(errors="replace") if isinstance(data, bytes) else data, _finite if finite else None
    try:
        return _plain(json.loads(text, parse_float=real, parse_constant=real), MAX_DEPTH, [MAX_VALUES])
    except json.JSONDecodeError as e:
        raise NoJSONError(f"is not JSON: {e.msg} at character {e.pos + 1}") from None
    except RecursionError:
        raise UnreadableError(f"cannot be read: it has more than {MAX_DEPTH} brackets around a value") from None
    except UnreadableError:
        raise
    except ValueError:
        raise UnreadableError("cannot be read: it has a number of thousands of digits") from None


def json_object(data: str | bytes) -> dict[str, Any]:
    """A JSON object; empty where it is none, or cannot be read."""
    try:
        found = read_json(data)
    except UnreadableError:
        return {}
    return found if isinstance(found, dict) else {}


def _plain(value: Any, depth: int, left: list[int]) -> Any:
    if isinstance(value, str):
        return plain(value)
    if not isinstance(value, list | dict):
        return value
    left[0] -= len(value)
    if left[0] < 0:
        raise UnreadableError(f"cannot be read: it has more than {MAX_VALUES} values")
    if depth == 0:
        raise RecursionError
    if isinstance(value, list):
        return [_plain(part, depth - 1, left) for part in value]
    return {plain(key): _plain(part, depth - 1, left) for key, part in value.items()}


def _finite(digits: str) -> float:
    if not math.isfinite(found := float(digits)):
        raise UnreadableError(f"cannot be read: {digits[:20]} is not a number of JSON")
    return found


def bounded(text: str, limit: int = MAX_TEXT) -> str:
    """A plain text of at most so many characters; what is left out is said at its end."""
    found = plain(text)
    return found if len(found) <= limit else f"{found[:limit]}\n({len(found) - limit} characters left out)"


def bounded_content(content: Content) -> Content:
    """Content whose texts are plain and have at most `MAX_TEXT` characters together; an image counts as some."""
    kept: list[Chunk] = []
    left = MAX_TEXT
    for chunk in chunks_of(content):
        kept.append(bounded(chunk, left) if isinstance(chunk, str) else chunk)
        left -= len(chunk) if isinstance(chunk, str) else MEDIA
        if left <= 0:
            break
    return joined(kept)


def left_behind(path: Path, most: int) -> bytes:
    """The beginning of a file that a stranger's program left: no link is followed, no pipe waited for.

    Args:
        path: where it stands, in a folder of our own.
        most: bytes that are read.

    Raises:
        OSError: there is none, something else stands there, or it may not be read.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link")
    with open(path, "rb", opener=_as_it_stands) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return file.read(most)


def _as_it_stands(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def number(value: Any, what: str) -> float:
    """A finite number, of at most `LARGEST` in size.

    Raises:
        EnvFailure: it is none; `what` says whose.
    """
    found = float_of(value)
    if not abs(found) <= LARGEST:
        size = f" of at most {LARGEST:g} in size" if math.isfinite(found) else ""
        raise EnvFailure(f"{what}: expected a finite number{size}, got {short(value)}")
    return found


def flag(value: Any, what: str) -> bool:
    """True or False, also as 1 or 0, or as an array of one.

    Raises:
        EnvFailure: it is neither; `what` says whose.
    """
    found = float_of(value)
    if found not in (0.0, 1.0):
        raise EnvFailure(f"{what}: expected True or False, got {short(value)}")
    return found == 1.0


def float_of(value: Any) -> float:
    """A number, also of an array of one; NaN for whatever is none, texts too."""
    if isinstance(value, str | bytes):
        return math.nan
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except Exception:  # whatever a stranger's object raises
        return math.nan


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Raises: EnvFailure for whatever is raised inside, the end of the program too, in one line: `what`, the exception,
    and the line of code."""
    try:
        yield
    except (LongstrideError, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as e:  # a library raises whatever it comes across
        raise EnvFailure(f"{what} raised {raised(e)}") from e


@contextmanager
def staying(who: Callable[[], str]) -> Iterator[None]:
    """Raises: EnvFailure where somebody else's code ends the program; what else it raises is passed on."""
    try:
        yield
    except SystemExit as e:
        raise EnvFailure(f"{who()} asked for the end of the program: {raised(e)}") from e


def raised(error: BaseException) -> str:
    """An exception in one line: `ValueError: bad move (game.py, line 12)`."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    try:
        said = " ".join(plain(str(error)).split())[:300]
    except Exception:  # it cannot be said
        said = ""
    return f"{type(error).__name__}{': ' if said else ''}{said}{place}"

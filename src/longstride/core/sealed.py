"""Sealed text: JSON objects and files that hold a checksum of their own.

What always holds: of sealed text no bit can be flipped, and of a file of sealed lines no line lost, doubled, cut or
moved, that reading it does not find. A seal is a CRC-32: it finds what happens by accident (every error of up to 32
bits in a row, and all but one in four billion of the others) and is no protection from whoever wants to deceive.

A sealed object is JSON whose last key is `crc`: the checksum of all text before it, and of its place, which is what the
reader knows of it (the number of the line).
"""

import json
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any
from zlib import crc32

from longstride.core.files import write_atomically

NOT_WRITTEN = "it is not what was written there"
_KEY, _END = b',"crc":"', b'"}'
_SIZE = len(_KEY) + 8 + len(_END)
_COMMENT = "# checksum of all above: "


def dumps(data: Any, **form: Any) -> str:
    """JSON: of a number that is not finite, which JSON has not, nothing is known (`null`)."""
    try:
        return json.dumps(data, allow_nan=False, **form)
    except ValueError:
        return json.dumps(_finite(data), allow_nan=False, **form)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not isfinite(data) else data


class DamagedError(ValueError):
    """What stands there is not what was written."""


def seal(text: str, place: str = "") -> str:
    """A JSON object (in ASCII, not empty) with its seal."""
    body = text[:-1].encode("ascii")
    return (body + _seal(body, place)).decode("ascii")


def unseal(data: bytes, place: str = "") -> bytes:
    """The JSON object that `seal` was given.

    Raises:
        DamagedError: it is not sealed, or not what was sealed for that place.
    """
    body = data[:-_SIZE]
    if data[-_SIZE:] != _seal(body, place):
        raise DamagedError(NOT_WRITTEN)
    return body + b"}"


def _seal(body: bytes, place: str) -> bytes:
    return b"%s%08x%s" % (_KEY, crc32(body, crc32(place.encode("ascii"))), _END)


def loads(data: bytes, place: str = "") -> dict[str, Any]:
    """The data of a sealed object.

    Raises:
        DamagedError: see `unseal`; or it is no JSON object, or nested too deeply to be read.
    """
    body = unseal(data, place)
    try:
        found = json.loads(body)
    except RecursionError as e:
        raise DamagedError("it is nested too deeply") from e
    except ValueError as e:
        raise DamagedError(f"it is not JSON: {e}") from e
    if not isinstance(found, dict):
        raise DamagedError("it is not a JSON object")
    return found


def write_object(path: Path, data: dict[str, Any]) -> None:
    """Replaces a file by a sealed object, a line of its own."""
    write_atomically(path, seal(dumps(data)) + "\n")


def read_object(path: Path) -> dict[str, Any]:
    """What `write_object` wrote.

    Raises:
        OSError: the file cannot be read.
        DamagedError: it is not what was written.
    """
    data = path.read_bytes()
    if data[-1:] != b"\n":
        raise DamagedError("its end is missing")
    return loads(data[:-1])


def place_of(k: int) -> str:
    """The place of line `k`, counted from 0, of a file that grows."""
    return str(k + 1)


def cut(data: bytes) -> list[bytes]:
    """The lines of a file that grows; the last one may be part of one, which a seal tells."""
    *lines, rest = data.split(b"\n")
    return [*lines, rest] if rest else lines


def seal_lines(texts: Sequence[str]) -> str:
    """The content of a file that is written whole: a sealed line for each JSON object."""
    return "".join(seal(text, f"{k} of {len(texts)}") + "\n" for k, text in enumerate(texts, 1))


def unseal_lines(data: bytes) -> Iterator[bytes | None]:
    """The objects of a file that `seal_lines` made; None for a line that is damaged, and for the end of a file that
    has lost its own."""
    *lines, rest = data.split(b"\n")
    for k, line in enumerate(lines, 1):
        try:
            yield unseal(line, f"{k} of {len(lines)}")
        except DamagedError:
            yield None
    if rest:
        yield None


def seal_toml(text: str) -> str:
    """TOML text (whole lines) with its seal, a comment in the last line."""
    return f"{text}{_COMMENT}{crc32(text.encode()):08x}\n"


def check_toml(data: bytes) -> None:
    """Refuses what is not as `seal_toml` made it.

    Raises:
        DamagedError: it was changed, or has no seal.
    """
    text, mark, _ = data.rpartition(_COMMENT.encode())
    if not mark or data != b"%s%s%08x\n" % (text, mark, crc32(text)):
        raise DamagedError(NOT_WRITTEN)

"""Content: what is seen and said beside text, by content.

What always holds: media are the same where their bytes are, and their name is the SHA-256 of these; in prompts they
stand as *placeholders*, ids below zero that are made of the name, so whatever compares ids compares content, and no
vocabulary has such an id: who takes text alone can refuse it, and cannot overlook it; text alone is a `str`, however it
was cut.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

LARGEST = 1 << 26
"""Bytes of one image or of data, at most."""
_KIND = re.compile(r"[a-z0-9]+/[a-z0-9.+-]+")
_DIGITS = 15
"""Hexadecimal digits of a name that are in its placeholder: 60 bits, so that tensors of int64 hold it."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Media:
    """What is seen and is no text: an image, or data."""

    data: bytes = field(repr=False, compare=False)
    kind: str = field(default="image/png", compare=False)
    """Media type of the bytes: `image/png`, `application/json`."""
    name: str = field(init=False)
    """SHA-256 of the bytes, in hexadecimal digits."""

    def __post_init__(self) -> None:
        if not _KIND.fullmatch(self.kind):
            raise ValueError(f"expected a media type such as image/png, got {self.kind[:60]!r}")
        if len(self.data) > LARGEST:
            raise ValueError(f"expected at most {LARGEST} bytes of {self.kind}, got {len(self.data)}")
        object.__setattr__(self, "name", hashlib.sha256(self.data).hexdigest())

    @property
    def placeholder(self) -> int:
        """The id that stands for it in a prompt."""
        return -1 - int(self.name[:_DIGITS], 16)

    def __str__(self) -> str:
        return f"[{self.kind}, {len(self.data)} bytes, {self.name[:8]}]"


Chunk = str | Media
Content = str | tuple[Chunk, ...]
"""What is seen: a text, or chunks in their order, of which one at least is no text."""


def joined(chunks: Iterable[Chunk]) -> Content:
    """Content of chunks: neighbouring texts become one, and empty ones nothing.

    Raises:
        TypeError: there is something that is no chunk.
    """
    found: list[Chunk] = []
    for is_text, run in groupby(chunks, lambda chunk: isinstance(chunk, str)):
        parts = list(run)
        found.extend(["".join(map(str, parts))] if is_text else parts)
    for chunk in found:
        if not isinstance(chunk, Chunk):
            raise TypeError(f"content is of texts and Media, got {chunk!r:.60} ({type(chunk).__name__})")
    return tuple(filter(None, found)) if any(isinstance(chunk, Media) for chunk in found) else "".join(map(str, found))


def chunks_of(content: Content) -> tuple[Chunk, ...]:
    """The chunks of content, also where it is a text."""
    return (content,) if isinstance(content, str) else content


def with_lines(content: Content, *lines: str) -> Content:
    """Content with more lines at its end; empty ones are left out."""
    more = "\n".join(filter(None, lines))
    return joined([*chunks_of(content), "\n" if content and more else "", more])


def text_in(content: Content) -> str:
    """Its text, without what is no text."""
    return content if isinstance(content, str) else "".join(chunk for chunk in content if isinstance(chunk, str))


def described(content: Content) -> str:
    """Its text, with a word for all that is no text: for readers."""
    return content if isinstance(content, str) else "".join(map(str, content))


def media_of(content: Content) -> list[Media]:
    """All of it that is no text, in order."""
    return [] if isinstance(content, str) else [chunk for chunk in content if isinstance(chunk, Media)]


def by_placeholder(media: Iterable[Media]) -> dict[int, Media]:
    """Media by the id that stands for them.

    Raises:
        ValueError: two of them have the same one.
    """
    found: dict[int, Media] = {}
    for each in media:
        if found.setdefault(each.placeholder, each) != each:
            raise ValueError(f"{each} and {found[each.placeholder]} have the same placeholder; leave one of them out")
    return found


def placed(ids: Sequence[int], known: Mapping[int, Media]) -> tuple[Media, ...]:
    """What placeholders among ids stand for, each once, in the order of their first places.

    Raises:
        ValueError: a placeholder is of none that is known.
    """
    found = dict.fromkeys(i for i in ids if i < 0)
    if missing := [i for i in found if i not in known]:
        raise ValueError(f"the placeholder {missing[0]} stands for nothing that was seen")
    return tuple(known[i] for i in found)

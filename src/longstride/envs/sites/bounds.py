"""How much of a page is parsed: the beginning of its bytes that the HTML parser reads in bounded time.

What always holds: the work of the parser and of the walk over its tree is bounded by the number of bytes, so that a
page takes at most some 50 ms for each started 100 kB; the same bytes are always cut at the same place, and the reason
is given.

Three things cost a parser more than the bytes they take: a tag inside many open ones; an element that stays open and
that every later block opens again (`<b>` and its like); an attribute, which is compared with those before it. Before
the bytes are parsed it is not known what is a tag and what is text, a comment or a script, so everything that may be a
tag is counted as one.
"""

import re
from collections import Counter

MAX_BYTES = 1_000_000
MAX_TAGS = 10_000
MAX_OPEN = 600_000
"""Open elements, summed over the tags: 2 ms (100,000 nested `<div>` would take 17 s)."""
REOPENED = 10
"""Open elements that one of those counts as that every later block opens again."""
FREE_ATTRIBUTES, ATTRIBUTES_PER_BYTE = 1_000_000, 150
"""Squares of the numbers of attributes, summed over the tags: so many for any page and for each of its bytes. A
million take 1.4 ms."""
FREE_STEPS, STEPS_PER_BYTE = 20_000, 0.4
"""Steps of the count of attributes, for any page and for each of its bytes. A step takes half a microsecond."""
FEW = 30
"""Attributes of a tag that need not be counted exactly."""

_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_NO_END_TAG = frozenset(b"br col dd dt hr img input li link meta option p source tbody td th thead tr wbr".split())
_REOPENED = frozenset(b"b big code em font i s small strike strong tt u".split())
_ROOT = re.compile(rb"<(?:html|body)(?=[\t\n\f\r />])", re.IGNORECASE)

# The places inside a tag (HTML, section 13.2.5), and the place that follows each of them.
_START = re.compile(rb"</?(?=[a-zA-Z])")
_PLAIN_TAG = re.compile(
    rb"""</?[a-zA-Z][\w-]*+
    (?:[\t\n\f\r ]+[^\t\n\f\r />"'=<]++(?:[\t\n\f\r ]*=[\t\n\f\r ]*("[^"<]*"|'[^'<]*'|[^\t\n\f\r >"'=<]++))?)*+
    [\t\n\f\r /]*>""",
    re.VERBOSE,
)
_PIECE = re.compile(rb"[\t\n\f\r ]+|[/>=\"'<]|[^\t\n\f\r />=\"'<]+")
_KIND = dict.fromkeys(b"\t\n\f\r ", 0) | {byte: kind for kind, byte in enumerate(b"/>=\"'", 1)}
_NAME, _BETWEEN, _ATTRIBUTE, _AFTER, _VALUE, _BARE, _DOUBLE, _SINGLE, _END = range(9)
_NEXT = {
    #        white space,   /,        >,         =,           ",           ',       others
    _NAME: (_BETWEEN, _BETWEEN, _END, _NAME, _NAME, _NAME, _NAME),
    _BETWEEN: (_BETWEEN, _BETWEEN, _END, _ATTRIBUTE, _ATTRIBUTE, _ATTRIBUTE, _ATTRIBUTE),
    _ATTRIBUTE: (_AFTER, _BETWEEN, _END, _VALUE, _ATTRIBUTE, _ATTRIBUTE, _ATTRIBUTE),
    _AFTER: (_AFTER, _BETWEEN, _END, _VALUE, _ATTRIBUTE, _ATTRIBUTE, _ATTRIBUTE),
    _VALUE: (_VALUE, _BARE, _END, _BARE, _DOUBLE, _SINGLE, _BARE),
    _BARE: (_BETWEEN, _BARE, _END, _BARE, _BARE, _BARE, _BARE),
    _DOUBLE: (_DOUBLE, _DOUBLE, _DOUBLE, _DOUBLE, _BETWEEN, _DOUBLE, _DOUBLE),
    _SINGLE: (_SINGLE, _SINGLE, _SINGLE, _SINGLE, _SINGLE, _BETWEEN, _SINGLE),
}
_QUOTED = {_DOUBLE: re.compile(rb'[^"<]+'), _SINGLE: re.compile(rb"[^'<]+")}


def bounded(html: bytes) -> tuple[bytes, list[str]]:
    """The beginning of a page that is parsed in bounded time, and the reasons why it ends there; none if nothing was
    cut."""
    cut = []
    if len(html) > MAX_BYTES:
        html, cut = html[:MAX_BYTES], [f"more than {MAX_BYTES} bytes"]
    if html.count(b"<") > 200:
        end, why = _too_many_tags(html)
        html, cut = html[:end], cut + why
    if (end := _too_many_attributes(html)) is not None:
        html, cut = html[:end], [*cut, "too many attributes"]
    return html, cut


def _too_many_tags(html: bytes) -> tuple[int, list[str]]:
    """Where the tags are too many or too deep, and which of it; the end if neither."""
    opened: Counter[bytes] = Counter()
    depth = work = 0
    for tags, tag in enumerate(_TAG.finditer(html)):
        name = tag[2].lower()
        if name not in _NO_END_TAG:
            step = 1 if not tag[1] else -1 if opened[name] else 0
            opened[name] += step
            depth += step * REOPENED if name in _REOPENED else step
        work += depth
        if tags >= MAX_TAGS:
            return tag.start(), [f"more than {MAX_TAGS} tags"]
        if work > MAX_OPEN:
            return tag.start(), ["nested too deeply"]
    return len(html), []


def _too_many_attributes(html: bytes) -> int | None:
    """Where the attributes of the tags so far, squared and summed, are more than a page of this length may have.

    Follows all tags that may have begun at once, those in comments and quotation marks too: `live` has, for each place
    inside a tag, the most attributes of a tag that is there, and whether it may be one of the roots, whose attributes
    are put together. Tags at the same place continue alike.
    """
    allowed = FREE_ATTRIBUTES + ATTRIBUTES_PER_BYTE * len(html)
    # each attribute stands behind one of these
    if sum(map(html.count, (b" ", b"\t", b"\n", b"\f", b"\r", b"/", b'"', b"'"))) ** 2 <= allowed:
        return None
    live: dict[int, tuple[int, bool]] = {}
    steps = FREE_STEPS + STEPS_PER_BYTE * len(html)
    work = of_roots = at = 0
    while steps > 0:
        if not live:
            found = _START.search(html, at)
            if found is None:
                return None
            at = found.start()
            plain = _PLAIN_TAG.match(html, at)
            if plain and (few := len(plain[0].split())) <= FEW and not _ROOT.match(html, at):
                work, at = work + few * few, plain.end()
                continue
        elif len(live) == 1 and (quoted := _QUOTED.get(next(iter(live)))) and (inside := quoted.match(html, at)):
            at = inside.end()
        piece = _PIECE.match(html, at)
        if piece is None:
            return None
        steps -= 1 + len(live)
        kind, following = _KIND.get(html[at], 6), {}
        for place, (count, root) in live.items():
            to = _NEXT[place][kind]
            if to == _ATTRIBUTE != place:
                count += 1
                if work + count * (count + root * of_roots) > allowed:
                    return at
            if to == _END:
                work += count * (count + root * of_roots)
                of_roots += root * count
            else:
                most, was_root = following.get(to, (0, False))
                following[to] = max(count, most), root or was_root
        if _START.match(html, at):
            following.setdefault(_NAME, (0, _ROOT.match(html, at) is not None))
        live, at = following, piece.end()
    return at

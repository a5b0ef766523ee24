"""Text of pages, made fit to be read by a policy and to be written to a file.

What always holds: no cleaned text has a lone surrogate (half of a character, which has no UTF-8), and none has
characters that are not seen.
"""

import re
from typing import Any

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"\[(\s*\d+\s*)\]")
_INVISIBLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)


def clean(text: str) -> str:
    """One line: white space collapsed, unseen characters (controls, bidi, zero width) removed, lone surrogates replaced
    by U+FFFD, `[3]` written as `(3)`."""
    text = " ".join(text.split())
    if not (text.isascii() and text.isprintable()):
        text = " ".join(_INVISIBLE.sub("", well_formed(text)).split())
    return _NUMBER.sub(r"(\1)", text) if "[" in text else text


def well_formed(value: Any) -> Any:
    """JSON data with lone surrogates replaced by U+FFFD, in the keys and texts of whatever is nested in it."""
    if isinstance(value, str):
        return value if value.isascii() else _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [well_formed(v) for v in value]
    if isinstance(value, dict):
        return {well_formed(k): well_formed(v) for k, v in value.items()}
    return value

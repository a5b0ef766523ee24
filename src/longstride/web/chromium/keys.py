"""Keys of a US keyboard as events of the DevTools protocol.

What always holds: a character that is on the keyboard is one real stroke, down and up, as a page's handlers expect it;
others are put in as an input method does, without keys. Shift is not pressed for capitals.
"""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

_ROWS = {
    "Backquote": "`~",
    "Minus": "-_",
    "Equal": "=+",
    "BracketLeft": "[{",
    "BracketRight": "]}",
    "Backslash": "\\|",
    "Semicolon": ";:",
    "Quote": "'\"",
    "Comma": ",<",
    "Period": ".>",
    "Slash": "/?",
    "Space": " ",
    "Enter": "\r\n",
    **{f"Digit{n}": f"{n}{sign}" for n, sign in enumerate(")!@#$%^&*(")},
    **{f"Key{letter}": letter.lower() + letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
}
_CODES = {sign: code for code, signs in _ROWS.items() for sign in signs}
_NUMBERS = dict(zip("`-=[]\\;',./", (192, 189, 187, 219, 221, 220, 186, 222, 188, 190, 191), strict=True))
"""What Windows calls the keys of punctuation; each other key is called by its first sign or its capital."""


def strokes(words: str) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """Methods and parameters that type `words`, in groups: those of one may be sent together. A line break is Enter."""
    for on_keyboard, signs in groupby(words, _CODES.__contains__):
        if on_keyboard:
            yield [event for sign in signs for event in _stroke(sign)]
        else:
            yield [("Input.insertText", {"text": "".join(signs)})]


def _stroke(sign: str) -> list[tuple[str, dict[str, Any]]]:
    code = _CODES[sign]
    first = _ROWS[code][0]
    text = "\r" if code == "Enter" else sign
    key = {
        "code": code,
        "key": code if code == "Enter" else sign,
        "windowsVirtualKeyCode": _NUMBERS.get(first, ord(first.upper())),
    }
    down = key | {"type": "keyDown", "text": text, "unmodifiedText": text}
    return [("Input.dispatchKeyEvent", down), ("Input.dispatchKeyEvent", key | {"type": "keyUp"})]

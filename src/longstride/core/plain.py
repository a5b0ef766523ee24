"""Text without anything that is no text: what others say is shown in terminals, put into prompts and stored."""

import re

_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequences: colours, the cursor (ECMA-48, 5.4)
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"  # control strings: titles, links (5.6)
    r"|\x1b[ -/]*[0-~]"  # other escapes (5.3)
)


def plain(text: str) -> str:
    """A text without what a terminal obeys: without escape sequences and control characters (C0 and C1) but for ends of
    lines and tabs, and with `?` in place of halves of characters."""
    # the faster questions first
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable() or not _ODD.search(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n").encode(errors="replace").decode()
    return _ODD.sub("", _SEQUENCE.sub("", text))

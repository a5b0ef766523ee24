"""Tables of plain text."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows below a head, in columns; nothing where there is only the head."""
    if len(rows) == 1:
        return ""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)

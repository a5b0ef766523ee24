"""Tables, of plain text and for a page."""

import json
from collections.abc import Sequence
from html import escape
from typing import Any


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows below a head, in columns; nothing where there is only the head."""
    if len(rows) == 1:
        return ""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)


def table_html(rows: Sequence[Sequence[str]]) -> str:
    """As `table`, for a page."""
    if len(rows) < 2:
        return ""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in rows[0])
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[1:])
    page = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll words" tabindex="0">{page}</div>'


def brief(value: Any, most: int) -> str:
    """A setting in a cell of at most so many characters."""
    text = "-" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= most else text[: most - 3] + "..."

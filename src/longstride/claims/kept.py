"""The form in which a claim's result is kept: final values by seed, with all that is needed to make them again.

Settings are whole, measured numbers have six significant digits: far below what seeds differ by. Curves stay in the run
folders.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from longstride.core.errors import RunError
from longstride.core.files import write_atomically

T = TypeVar("T")
DIGITS = 6
"""Significant digits of what was measured."""


def write_kept(path: Path, result: Mapping[str, Any]) -> dict[str, Any]:
    """Writes a result to `path` with a line for each arm, relation and setting, and returns what is written: the
    result with its measured numbers rounded."""
    rounded = {key: value if key == "recipe" else _rounded(value) for key, value in result.items()}
    write_atomically(path, _lines(rounded) + "\n")
    return rounded


def read_kept(path: Path, use: Callable[[dict[str, Any]], T]) -> T:
    """What `use` makes of the result at `path`.

    Raises:
        RunError: the file is damaged, or lacks what is used.
    """
    try:
        return use(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise RunError(f"{path} cannot be read: {type(e).__name__}: {e}; remove it, and run the claim again") from e


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _rounded(of) for key, of in value.items()}
    return [_rounded(of) for of in value] if isinstance(value, list) else value


def _lines(value: Any, depth: int = 0) -> str:
    """JSON of which two levels take a line for each entry, and all below stands on that line."""
    if depth == 2 or not value or not isinstance(value, (dict, list)) or not _nested(value):
        return json.dumps(value)
    inner = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        entries = [f"{json.dumps(key)}: {_lines(of, depth + 1)}" for key, of in value.items()]
        return f"{{{inner}{f',{inner}'.join(entries)}\n{' ' * depth}}}"
    return f"[{inner}{f',{inner}'.join(_lines(of, depth + 1) for of in value)}\n{' ' * depth}]"


def _nested(value: dict[str, Any] | list[Any]) -> bool:
    return any(isinstance(of, (dict, list)) for of in (value.values() if isinstance(value, dict) else value))

"""Records of a foreign file: read with their numbers, their addresses moved, their fields checked.

What always holds: whatever a file holds, reading it raises nothing but `TaskError`; the message names the file, the
record and the field. Texts that cannot be written as UTF-8 (lone surrogates) are refused here, so that a task that was
read can be saved.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from pydantic import ValidationError

from longstride.core.component import unknown
from longstride.core.errors import TaskError, short
from longstride.core.task import Task

Hosts = Mapping[str, str]
"""Where sites are: the name of a WebArena site, or the beginning of an address, to the address that stands for it."""

PORTS = {
    "7770": "shopping",
    "7780": "shopping_admin",
    "9999": "reddit",
    "8023": "gitlab",
    "3000": "map",
    "8888": "wikipedia",
    "4399": "homepage",
}
"""WebArena's sites by the port that its own images listen on: copies of its files have hosts written into them."""


@dataclass(frozen=True, slots=True)
class BenchmarkRecord:
    """One JSON object of a file, and its place."""

    data: dict[str, Any]
    where: str
    """What messages call it, such as `tasks.jsonl, line 3`."""
    number: int

    def fail(self, key: str, expected: str) -> TaskError:
        """The error for a field that is not as expected."""
        if key not in self.data:
            return TaskError(f"{self.where}: {key}: missing; expected {expected}")
        return TaskError(f"{self.where}: {key}: expected {expected}, got {short(self.data[key])}")

    def text(self, key: str) -> str:
        """A text that is not blank."""
        value = self.data.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self.fail(key, "a text")
        return value.strip()

    def optional(self, key: str) -> str | None:
        """A text; None where it is missing, null or blank."""
        value = self.data.get(key)
        return None if value is None or value == "" else self.text(key)

    def texts(self, key: str) -> list[str]:
        """A list of texts that are not blank, itself not empty."""
        value = self.data.get(key)
        if not is_texts(value):
            raise self.fail(key, "a list of texts")
        return value

    def name(self, key: str) -> str:
        """A number or a text, as a text."""
        value = self.data.get(key)
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else self.text(key)

    def address(self, key: str) -> str:
        """An `http` or `https` address."""
        value = self.text(key)
        if not is_address(value):
            raise self.fail(key, "an http or https address")
        return value

    def table(self, key: str) -> "BenchmarkRecord":
        """An object inside; its fields are named from here."""
        value = self.data.get(key)
        if not isinstance(value, dict):
            raise self.fail(key, "an object")
        return BenchmarkRecord(value, f"{self.where}: {key}", self.number)


def is_texts(value: Any) -> TypeGuard[list[str]]:
    """Whether a value is a list of texts that are not blank, itself not empty."""
    return isinstance(value, list) and bool(value) and all(isinstance(v, str) and v.strip() for v in value)


def is_address(value: str) -> bool:
    """Whether a text is one `http` or `https` address with a host."""
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018 (raises where it is no number)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"\s", value)


def read_lines(path: Path) -> Iterator[BenchmarkRecord]:
    """The records of a file of JSON lines; blank lines are passed over."""
    for number, line in enumerate(_text(path).split("\n"), 1):  # not splitlines: JSON may hold a bare U+2028
        if line.strip():
            yield _record(_json(line, f"{path}, line {number}"), f"{path}, line {number}", number)


def read_list(path: Path) -> Iterator[BenchmarkRecord]:
    """The records of a file that is one JSON list."""
    items = _json(_text(path), str(path))
    if not isinstance(items, list):
        raise TaskError(f"{path}: expected a JSON list of objects, got {short(items)}")
    for number, item in enumerate(items, 1):
        yield _record(item, f"{path}, record {number}", number)


def read_table(path: Path) -> BenchmarkRecord:
    """The record of a file that is one JSON object."""
    return _record(_json(_text(path), str(path)), str(path), 1)


def tasks_from(
    records: Iterable[BenchmarkRecord], make: Callable[[BenchmarkRecord], Task | None], hosts: Hosts
) -> list[Task]:
    """The tasks that `make` makes of records, without those of which it makes None.

    Args:
        records: the records, as they stand in the file.
        make: a record with its addresses moved to its task; raises `TaskError`.
        hosts: where sites are; empty moves nothing.

    Raises:
        TaskError: a record that is no task, an id that was used already, or a table of hosts that cannot be used.
    """
    move = _mover(hosts)
    tasks: dict[str, Task] = {}
    places: dict[str, str] = {}
    for record in records:
        try:
            task = make(BenchmarkRecord(_everywhere(move, record.data, record.where), record.where, record.number))
        except RecursionError:
            raise TaskError(f"{record.where}: nested too deeply for a task") from None
        except ValidationError as e:
            first = e.errors()[0]
            raise TaskError(f"{record.where}: {'.'.join(map(str, first['loc']))[:80]}: {first['msg']}") from e
        if task is None:
            continue
        if task.id in tasks:
            raise TaskError(f"{record.where}: the id {short(task.id)} was used in {places[task.id]} already")
        tasks[task.id], places[task.id] = task, record.where
    return list(tasks.values())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as e:
        raise TaskError(f"cannot read {path}: {e.strerror or e}") from e
    except UnicodeDecodeError as e:
        raise TaskError(f"{path}: not UTF-8 text ({e.reason})") from e


def _json(text: str, where: str) -> Any:
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as e:
        raise TaskError(f"{where}: not JSON ({e.msg} at line {e.lineno}, column {e.colno})") from e
    except UnicodeEncodeError as e:
        raise TaskError(f"{where}: a text with half a character (a lone surrogate)") from e
    except RecursionError as e:
        raise TaskError(f"{where}: nested too deeply for a task") from e
    except ValueError as e:  # a number of thousands of digits
        raise TaskError(f"{where}: {e}") from e
    return value


def _record(value: Any, where: str, number: int) -> BenchmarkRecord:
    if not isinstance(value, dict):
        raise TaskError(f"{where}: expected a JSON object, got {short(value)}")
    return BenchmarkRecord(value, where, number)


def _mover(hosts: Hosts) -> Callable[[str, str], str]:
    """A function of a text and its place that moves the addresses in it."""
    for name, target in hosts.items():
        if name not in PORTS.values() and not is_address(name):
            raise TaskError(f"hosts: {unknown('site', name, PORTS.values())}, or an address such as http://old.test")
        if not is_address(target):
            raise TaskError(f"hosts: {name}: expected an http or https address, got {target!r}")
    to = {name.rstrip("/"): target.rstrip("/") for name, target in hosts.items()}
    old = sorted((re.escape(name) for name in to if name not in PORTS.values()), key=len, reverse=True)
    sites = "|".join(site.upper() for site in PORTS.values())
    end = r"(?![\w:-]|\.\w)"  # http://a.test is not the beginning of http://a.test.org
    given = rf"|(?P<old>{'|'.join(old)}){end}" if old else ""
    pattern = re.compile(rf"__(?P<site>{sites})__{given}|https?://[\w.-]+:(?P<port>{'|'.join(PORTS)}){end}")

    def move(text: str, where: str) -> str:
        def moved(found: re.Match[str]) -> str:
            groups = found.groupdict()
            if groups.get("old"):
                return to[groups["old"]]
            if site := groups["site"]:
                if site.lower() not in to:
                    raise TaskError(f"{where}: {found[0]} needs an address; give hosts one for {site.lower()!r}")
                return to[site.lower()]
            target = to.get(PORTS[groups["port"]])
            if target is None:
                return found[0]
            parts = urlsplit(target)  # the path is in the text already: only the origin is moved
            return f"{parts.scheme}://{parts.netloc}"

        return pattern.sub(moved, text)

    return move


def _everywhere(move: Callable[[str, str], str], value: Any, where: str) -> Any:
    if isinstance(value, str):
        return move(value, where)
    if isinstance(value, list):
        return [_everywhere(move, v, where) for v in value]
    if isinstance(value, dict):
        return {k: _everywhere(move, v, where) for k, v in value.items()}
    return value

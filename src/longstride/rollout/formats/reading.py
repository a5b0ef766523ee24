"""Reading episodes from files of any of the formats, ours or anybody's.

What always holds: the format is told from what is in a file; one document or row is in memory at a time, and its size
is bounded; an image is read from the folder of the file that names it, or below, and from nowhere else; what cannot be
read is one error with file and line.
"""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from longstride.core.content import LARGEST, Media
from longstride.core.errors import RunError, short
from longstride.core.trajectory import Trajectory
from longstride.rollout.formats import atif, rows
from longstride.rollout.formats.conversation import of_inline
from longstride.rollout.formats.fields import EXTRA, MOST, Data, parse
from longstride.rollout.formats.parquet import read_table

ENDS = (".json", ".jsonl", ".parquet")
"""How files with episodes end."""


class Found(NamedTuple):
    """An episode of a file."""

    place: str
    """File, and line where there are several."""
    trajectory: Trajectory
    judged: bool
    """Whether the file says what came of it; one of others says what was said, and no more."""


def read_episodes(path: Path) -> Iterator[Found]:
    """The episodes of a file, or of all files in a folder and those below it, by name.

    Raises:
        RunError: there is none, or one cannot be read (file and line are named).
        MissingExtra: a table, and pyarrow is not installed.
    """
    ordinals = count()
    for file in _files(path):
        yield from _read(file, ordinals, file != path)
    if not next(ordinals):
        raise RunError(
            f"{path} has no episodes; expected ATIF documents (*.json), rows of messages or sft (*.jsonl), "
            "or tables (*.parquet)"
        )


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        inside = sorted(file for file in path.rglob("*") if file.suffix.lower() in ENDS)
        yield from (file for file in inside if file.is_file() and file.resolve().is_relative_to(path.resolve()))
    elif path.is_file() and path.suffix.lower() in ENDS:
        yield path
    elif not path.exists():
        raise RunError(f"there is nothing at {path}; expected a folder, or a file that ends in {', '.join(ENDS)}")
    else:
        raise RunError(f"{path} is neither a folder nor a file that ends in {', '.join(ENDS)}")


def _read(file: Path, ordinals: Iterator[int], among: bool) -> Iterator[Found]:
    """The episodes of a file; `among` others, a document that is no trajectory is passed over."""
    if file.suffix.lower() == ".json":
        data = _parsed(_bounded(file), str(file))
        if among and not (isinstance(data, dict) and "schema_version" in data):
            return
        yield from _episodes(iter([(str(file), data)]), file, ordinals)
    elif file.suffix.lower() == ".jsonl":
        yield from _episodes(_lines(file), file, ordinals)
    else:
        table = enumerate(read_table(file, MOST), 1)
        yield from _episodes(((f"{file}, row {k}", row) for k, row in table), file, ordinals)


def _bounded(file: Path) -> bytes:
    try:
        with file.open("rb") as f:
            data = f.read(MOST + 1)
    except OSError as e:
        raise RunError(f"cannot read {file}: {e.strerror or e}") from e
    if len(data) > MOST:
        raise RunError(f"{file} has more than {MOST} bytes, and no episode has")
    return data


def _lines(file: Path) -> Iterator[tuple[str, object]]:
    try:
        with file.open("rb") as f:
            for k in count(1):
                line, place = f.readline(MOST + 1), f"{file}, line {k}"
                if not line:
                    return
                if len(line) > MOST:
                    raise RunError(f"{place}: it has more than {MOST} bytes, and no episode has")
                if line.strip():
                    yield place, _parsed(line, place)
    except OSError as e:
        raise RunError(f"cannot read {file}: {e.strerror or e}") from e


def _parsed(data: bytes, place: str) -> object:
    try:
        return parse(data)
    except RunError as e:
        raise RunError(f"{place}: {e}") from None


def _episodes(data: Iterator[tuple[str, object]], file: Path, ordinals: Iterator[int]) -> Iterator[Found]:
    for place, found in data:
        try:
            yield _episode(place, found, data, file, ordinals)
        except RunError as e:
            raise e if str(e).startswith(str(file)) else RunError(f"{place}: {e}") from None


def _episode(
    place: str, found: object, more: Iterator[tuple[str, object]], file: Path, ordinals: Iterator[int]
) -> Found:
    if not isinstance(found, dict):
        raise RunError(f"expected a JSON object, got {short(found)}")
    name = f"{file.stem}/{(n := next(ordinals))}"
    if "schema_version" in found:
        version = str(found["schema_version"])
        if not version.startswith("ATIF-v1."):
            raise RunError(f"expected a schema_version ATIF-v1.*, got {short(version)}")
        extra = found.get("extra")
        judged = isinstance(extra, dict) and EXTRA in extra
        return Found(place, atif.episode(found, name, n, _beside(file)), judged)
    if "messages" in found or "completion" in found:
        return Found(place, rows.messages_episode(found, name, n), found.get(EXTRA) is not None)
    if "input_ids" in found:
        further = rows.rows_of_episode(found) - 1
        parts = [found, *(row for _, (_, row) in zip(range(further), more, strict=False))]
        if not all(isinstance(row, dict) and row.get(EXTRA) is None for row in parts[1:]):
            raise RunError(f"its episode has {further + 1} rows, and another one begins before its last")
        return Found(place, rows.sft_episode([row for row in parts if isinstance(row, dict)]), True)
    columns = ", ".join(map(str, found))[:200]
    raise RunError(f"expected schema_version (ATIF), messages, prompt and completion, or input_ids; it has {columns}")


def _beside(file: Path) -> Callable[[Data], Media]:
    """Reads images that stand beside a file."""

    def find(part: Data) -> Media:
        source = part.get("source")
        if not isinstance(source, dict):
            return of_inline(part)
        kind, path = str(source.get("media_type")), file.parent / str(source.get("path"))
        try:
            inside = path.resolve().is_relative_to(file.parent.resolve())
            if not inside or not path.is_file() or path.stat().st_size > LARGEST:
                raise RunError(f"expected an image of at most {LARGEST} bytes beside it, got {short(source)}")
            return Media(path.read_bytes(), kind)
        except (OSError, ValueError) as e:
            raise RunError(f"an image cannot be read: {str(e)[:200]}") from None

    return find

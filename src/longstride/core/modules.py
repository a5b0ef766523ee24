"""Modules of a user's own: a file that is trained from, and the modules that a recipe names as `module:Class`.

What always holds: a module has one name in every process, that of its file with its packages in front
(`core.component.module_name`), so that what a run folder names can be imported again; a module of that name from
another place is never taken for it; an error inside of it becomes one message with the file and the line.
"""

import hashlib
import importlib
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from longstride.core.errors import ChangedWarning, ConfigError, LongstrideError, RunError

OURS = "longstride."
_PACKAGE = str(Path(__file__).parents[1])
_LIBRARIES = (_PACKAGE, *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")))
_folders: set[str] = set()
"""Folders of the user's own that were made importable."""


def import_module(name: str) -> ModuleType:
    """The module called `name`, on Python's path or in the current folder.

    Raises:
        ConfigError: there is none, or it cannot be run (its file and line are named).
    """
    try:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as e:
            if not e.name or not f"{name}.".startswith(f"{e.name}."):  # it is there, and imports what is not
                raise
            add_folder(Path.cwd())  # `python -m` has it on its path, and the program `longstride` has not
            return importlib.import_module(name)
    except Exception as e:  # whatever a user's module does wrong is one message
        place = place_of(e)
        if place is None:
            raise ConfigError(f"{e}; expected a module on Python's path or in the current folder") from e
        raise ConfigError(f"{place}: {message_of(e)}") from e


def import_file(path: Path) -> str:
    """Imports a Python file under its own name, which is returned; its folder is importable from now on.

    Raises:
        ConfigError: the file is missing, its name is that of another module, or it cannot be run.
    """
    path = path.resolve()
    if not path.is_file():
        raise ConfigError(f"there is no file {path}")
    add_folder(path.parent)
    module = import_module(path.stem)
    if file_of(module) != path:
        other = file_of(module) or "a part of Python"
        raise ConfigError(f"{path} cannot be imported as {path.stem!r}: that is {other}; rename the file")
    return path.stem


def add_folder(folder: Path) -> None:
    """Makes the modules in a folder importable, as those beside a script are."""
    entry = str(folder.resolve())
    _folders.add(entry)
    if entry not in sys.path:
        sys.path.insert(0, entry)


def message_of(error: Exception) -> str:
    """What an error in a user's own code says."""
    pydantic = sys.modules.get("pydantic")  # whoever raises its errors has imported it
    if pydantic and isinstance(error, pydantic.ValidationError):
        from longstride.core.hints import sentences

        return sentences(error)
    return str(error) if isinstance(error, LongstrideError) else f"{type(error).__name__}: {error}"


def file_of(module: ModuleType) -> Path | None:
    """The file of a module; None for what has none."""
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if file else None


def place_of(error: BaseException) -> str | None:
    """`FILE, line N`: where a file cannot be read, or the innermost place that is neither Longstride nor Python's
    import system, the user's own before a library; None where there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    passed = (_PACKAGE, "<frozen", str(importlib.__file__))
    frames = own_frames(error) or traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in frames if not frame.filename.startswith(passed)]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else None


def own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The frames of an error, outermost first, that are in files of the folders that were made importable."""
    folders = tuple(f"{folder}/" for folder in _folders)
    return [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(folders) and not frame.filename.startswith(_LIBRARIES)
    ]


def own_modules(data: Any) -> dict[str, dict[str, str]]:
    """Where the modules are that the plain data of a component names in a `type`: by name, `file` and `sha256`."""
    found = {}
    for name in sorted(set(_named(data))):
        if not name.startswith(OURS) and (file := file_of(import_module(name))):
            found[name] = {"file": str(file), "sha256": digest(file)}
    return found


def digest(file: Path) -> str:
    """SHA-256 of a file's content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def find_again(recorded: Mapping[str, Mapping[str, str]], run: Path) -> None:
    """Makes the modules importable that `own_modules` recorded for a run; warns of one that has changed since.

    Raises:
        RunError: the file of one is gone, and Python knows no module of its name; or another one has it.
    """
    for name, record in recorded.items():
        try:
            file, was = Path(record["file"]), record["sha256"]
        except (KeyError, TypeError) as e:
            raise RunError(f"{run / 'format.json'}: what it says of the module {name!r} cannot be read: {e!r}") from e
        if file.is_file():
            add_folder(_folder(name, file))
        try:
            found = file_of(import_module(name))
        except ConfigError as e:
            trouble = (
                f"which cannot be imported any more: {e}"
                if file.is_file()
                else ("which is not there any more; put it back, or its new folder on PYTHONPATH")
            )
            raise RunError(f"{run} was made with {file}, {trouble}") from e
        if found is None or file.is_file() and found != file:
            raise RunError(f"{run} was made with {file}, and {name!r} is {found} here; start a new process for it")
        if digest(found) != was:
            warnings.warn(ChangedWarning(found, run), stacklevel=2)


def _folder(name: str, file: Path) -> Path:
    """The folder from which `file` is imported under the dotted `name`."""
    inside = name.count(".") + (file.stem == "__init__")
    return file.parents[inside]


def _named(data: Any) -> Iterator[str]:
    """The modules that plain data names."""
    if isinstance(data, Mapping):
        kind = data.get("type")
        if isinstance(kind, str) and ":" in kind:
            yield kind.partition(":")[0]
    inside = data.values() if isinstance(data, Mapping) else data if isinstance(data, list | tuple) else ()
    for value in inside:
        yield from _named(value)

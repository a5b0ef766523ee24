"""The files that the settings of an experiment name: data and tasks, by the places of the settings.

What always holds: a run folder says which file each was and what it held, so that it is found again from another
folder, and a file that has changed since is told from the one that the run was made with.
"""

import os
import warnings
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from longstride.core.errors import ChangedWarning, RunError
from longstride.core.modules import digest


def input_files(data: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """By the dotted place of a setting that names a file which is there: `file`, from the root on, and its `sha256`."""
    return {
        place: {"file": os.path.abspath(name), "sha256": digest(Path(name))}
        for place, inside, key in _texts(data)
        if os.path.isfile(name := inside[key])
    }


def find_files(data: Mapping[str, Any], recorded: Mapping[str, Mapping[str, str]], run: Path) -> Mapping[str, Any]:
    """The plain data of a run's experiment, in which a file that is named from another folder than this one is found
    where `input_files` recorded it; warns of one that has changed since.

    Raises:
        RunError: what is recorded cannot be read.
    """
    data = deepcopy(dict(data))
    for place, inside, key in _texts(data):
        if place in recorded:
            try:
                there, was = recorded[place]["file"], recorded[place]["sha256"]
            except (KeyError, TypeError) as e:
                raise RunError(f"{run}: what is recorded of the file in {place} cannot be read: {e!r}") from e
            if not os.path.exists(inside[key]) and os.path.isfile(there):
                inside[key] = there
            if os.path.isfile(inside[key]) and digest(Path(inside[key])) != was:
                warnings.warn(ChangedWarning(inside[key], run), stacklevel=2)
    return data


def _texts(data: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The texts in plain data that end like names of files, each with its dotted place, what holds it, and its key
    there. A `type` names a class, which may have a dot too."""
    for key, value in list(data.items() if isinstance(data, Mapping) else enumerate(data)):
        place = f"{where}.{key}" if where else str(key)
        if isinstance(value, Mapping | list):
            yield from _texts(value, place)
        elif isinstance(value, str) and key != "type" and Path(value).suffix:
            yield place, data, key

"""How a run folder says what it is: `format.json` with its format and the modules of the user's own that its recipe
names, and `run.toml` with the recipe. No torch.

What always holds: a folder of another format is refused in one line; the recipe of a run is read with the modules that
it was made with, or the message says which of them is missing, and a warning which has changed.
"""

import json
import os
from pathlib import Path
from typing import Any

from longstride import __version__
from longstride.core.config import dump_toml
from longstride.core.errors import RunError
from longstride.core.modules import find_again, own_modules
from longstride.run.experiment import Experiment, load_experiment

FORMAT, FORMAT_FILE, RUN_FILE = 2, "format.json", "run.toml"
"""How a run folder is written. 1, which had no such file: before budgets were one object."""


def write_atomically(path: Path, text: str) -> None:
    """Replaces a file's content: a reader sees the old or the new text, never a part."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def write_format(experiment: Experiment, folder: Path) -> None:
    """Writes both files."""
    modules = own_modules(experiment.as_data())
    said = {"format": FORMAT, "longstride": __version__} | ({"modules": modules} if modules else {})
    write_atomically(folder / FORMAT_FILE, json.dumps(said) + "\n")
    write_atomically(folder / RUN_FILE, dump_toml(experiment))


def check_format(folder: Path) -> dict[str, Any]:
    """What `format.json` says; refuses a run folder that this version cannot read.

    Raises:
        RunError: it is older or newer; the message says what to do.
    """
    path = folder / FORMAT_FILE
    try:
        said = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"format": 1}
        found = said["format"]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise RunError(f'{path} cannot be read: {e}; expected {{"format": {FORMAT}}}') from e
    if found != FORMAT:
        raise RunError(
            f"{folder} has run format {found}, and this version reads format {FORMAT}; train it anew, or open it with "
            "the version that wrote it"
        )
    return said


def read_experiment(folder: Path) -> Experiment:
    """What a run folder is a run of.

    Raises:
        RunError: it is no run folder, of another format, or a module of the user's own is gone.
        ConfigError: its `run.toml` cannot be read.
    """
    if not (folder / RUN_FILE).is_file():
        raise RunError(
            f"{folder} is no run folder: it has no {RUN_FILE}; give the folder that `longstride train` wrote"
        )
    try:
        find_again(check_format(folder).get("modules", {}), folder)
    except (KeyError, TypeError, AttributeError) as e:
        raise RunError(f"{folder / FORMAT_FILE}: `modules` cannot be read: {type(e).__name__} {e}") from e
    return load_experiment(folder / RUN_FILE)

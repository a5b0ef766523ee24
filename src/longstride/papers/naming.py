"""What a user names: a recipe or claim of the catalogue, a Python file, a module's attribute, or a TOML file.

| named | means |
|---|---|
| `tti` | a name from `longstride list` |
| `path/to/mine.py`, `path/to/mine.py:SMALL` | `RECIPE`, or `SMALL`, in a Python file; its folder becomes importable |
| `package.module:RECIPE` | an attribute of a module on Python's path, or below the folder of the command |
| `mine.toml` | a recipe as data; with `base = "..."`, any of these, only what differs from it |

What always holds: a name of the catalogue goes before a file of that name; an error names the file, and what was
expected of it.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from longstride import papers
from longstride.core.config import read_toml
from longstride.core.errors import ConfigError
from longstride.core.modules import add_folder, import_file
from longstride.run.experiment import Experiment, load_experiment

if TYPE_CHECKING:
    from longstride.claims.claim import Claim

_FILE = re.compile(r"(.+\.py)(?::(\w+))?")
_ATTRIBUTE = re.compile(r"([\w.]+):(\w+)")


def names_experiment(target: str) -> bool:
    """Whether a word names a recipe, and not a run or a model: a name of the catalogue, a file, or `module:RECIPE`."""
    file = _FILE.fullmatch(target) or target.endswith(".toml") or _ATTRIBUTE.fullmatch(target)
    return bool(file) or target in papers.catalogue()


def find_experiment(target: str) -> Experiment:
    """What is to be run.

    Raises:
        ConfigError: there is none of that name, or what is there is no recipe.
    """
    if target in papers.catalogue():
        return papers.load(target)
    if named := _FILE.fullmatch(target):
        return papers.recipe_in(import_file(Path(named[1])), named[2] or "RECIPE", named[1])
    if target.endswith(".toml") or Path(target).is_file():
        return _from_toml(Path(target))
    if named := _ATTRIBUTE.fullmatch(target):
        add_folder(Path.cwd())
        return papers.recipe_in(named[1], named[2])
    return papers.load(target)


def find_claim(target: str) -> "Claim":
    """What is to be claimed; as in `find_experiment`, but for TOML files, and `CLAIM` in a file.

    Raises:
        ConfigError: there is none of that name, or what is there is no claim.
    """
    if named := _FILE.fullmatch(target):
        return papers.claim_in(import_file(Path(named[1])), named[2] or "CLAIM", named[1])
    if named := _ATTRIBUTE.fullmatch(target):
        add_folder(Path.cwd())
        return papers.claim_in(named[1], named[2])
    return papers.load_claim(target)


def _from_toml(path: Path) -> Experiment:
    """The recipe that a TOML file describes; modules beside the file are importable."""
    add_folder(path.parent)
    data = read_toml(path)
    if "base" not in data:
        return load_experiment(path)
    base = data.pop("base")
    beside = path.parent / str(base)
    try:
        start = find_experiment(str(beside) if beside.is_file() else str(base))
        if data.get("type", start.type_name()) != start.type_name():
            raise ConfigError(f"type: the base is a {start.type_name()}; leave `type` out, or `base`")
        return start.replace(**{key: value for key, value in data.items() if key != "type"})
    except ConfigError as e:
        raise ConfigError("\n".join(f"{path}: {line}" for line in str(e).splitlines())) from e

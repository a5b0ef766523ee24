"""Configuration: TOML files and dotted overrides, built into components.

What always holds: reading what `dump_toml` made of a component gives an equal one; a message names the file and, where
the text itself is broken, the line; an unknown key is refused with the nearest one. Building is `core.component.build`.

An override is `key=value`: the key is dotted, with the number of one of a list (`phases.0.iterations=5`); the value is
read as TOML (`3e-4`, `[1, 2]`, `{type = "fixed"}`) and as plain text where it is none (`loss.type=ppo`). A list or
table replaces the old one whole. A new `type` keeps the fields that the old and the new type share and drops the
others. Without a value (`learner.lora=`) a field gets its default.
"""

import datetime
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import tomli_w

from longstride.core.component import Component, build, is_either, member_of
from longstride.core.errors import ConfigError

C = TypeVar("C", bound=Component)
_ODD = re.compile("[\x7f-\x9f]")
"""Control characters that TOML leaves as they are."""
UNSET = object()
"""What an override without a value says: the field's default. An empty text is `key=""`."""


def read_toml(path: Path) -> dict[str, Any]:
    """The data of a TOML file.

    Raises:
        ConfigError: the file cannot be read, or is not TOML (the line is named).
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise ConfigError(f"cannot read {path}: {e.strerror or e}") from e
    except UnicodeDecodeError as e:
        raise ConfigError(f"{path}: not UTF-8 text; expected a TOML file") from e
    except (ValueError, RecursionError) as e:  # TOMLDecodeError is a ValueError; so is a number of 5,000 digits
        raise ConfigError(f"{path}: not TOML: {e}") from e


def load_toml(cls: type[C], path: Path) -> C:
    """The component of class or family `cls` that a TOML file describes.

    Raises:
        ConfigError: as `read_toml`; or a key, type or value that does not fit (the file and the dotted key are named).
    """
    return described(cls, read_toml(path), path)


def described(cls: type[C], data: Mapping[str, Any], path: Path) -> C:
    """The component that the data of a TOML file describes; errors as `load_toml`."""
    try:
        return build(cls, data)
    except ConfigError as e:
        raise ConfigError("\n".join(f"{path}: {line}" for line in str(e).splitlines())) from e


def dump_toml(component: Component) -> str:
    """The TOML text that describes a component, all fields written out; it can be shown in a terminal."""
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", tomli_w.dumps(component.as_data()))


def parse_override(text: str) -> tuple[str, Any]:
    """`learner.lr=3e-4` -> ("learner.lr", 0.0003); without a value, `UNSET`.

    Raises:
        ConfigError: there is no `=`, or nothing in front of it, or an empty part between dots.
    """
    key, mark, value = text.partition("=")
    key = key.strip()
    if not mark:
        raise ConfigError(f"{text!r} is not an override; expected key=value, such as budget.turns=24")
    if not all(key.split(".")):
        raise ConfigError(f"{text!r} does not name a field; expected key=value, such as learner.lr=3e-4")
    return key, _value(value.strip()) if value.strip() else UNSET


def _value(text: str) -> Any:
    try:
        data = tomllib.loads(f"v = {text}")
    except (ValueError, RecursionError):
        return text
    value = data["v"]
    # a second line would be a second key, and no field is a date
    return text if len(data) > 1 or isinstance(value, datetime.date | datetime.time) else value


def resolve(cls: type[C], base: C, overrides: Sequence[str]) -> C:
    """`base`, a component of class or family `cls`, with overrides as they stand on a command line.

    Their order does not matter, but of two for one key the last one counts.

    Raises:
        ConfigError: not key=value, an unknown key or type (the nearest one is named), or a value that does not fit.
    """
    changes = dict(map(parse_override, overrides))
    data = base.as_data()
    # a table before the fields in it, a type before the fields that only it has
    for key in sorted(changes, key=lambda k: (k.count("."), k.rpartition(".")[2] != "type")):
        *path, last = key.split(".")
        place: Any = data
        for depth, name in enumerate(path, 1):
            if isinstance(place, list):
                place = place[_index(name, place, key, depth - 1)]
                if not isinstance(place, dict | list):
                    raise ConfigError(f"{key}: {'.'.join(path[:depth])} is {place!r} and has no fields; set it whole")
                continue
            holder = _at(base, path[: depth - 1])
            field = type(holder).model_fields.get(name) if isinstance(holder, Component) else None
            if field and is_either(field.annotation) and not isinstance(place.get(name), dict):
                place[name] = {}
            place = place.setdefault(name, {})
            if not isinstance(place, dict | list):
                raise ConfigError(f"{key}: {'.'.join(path[:depth])} is {place!r} and has no fields; set it whole")
        value = changes[key]
        if isinstance(place, list):
            if value is UNSET:
                raise ConfigError(f"{key}: one of a list has no default; set it, or the list whole")
            place[_index(last, place, key, len(path))] = value
            continue
        if last == "type":
            _keep_shared(place, _at(base, path), value, ".".join(path))
        if value is UNSET:
            place.pop(last, None)
        else:
            place[last] = value
    return build(cls, data)


def _index(name: str, place: list[Any], key: str, depth: int) -> int:
    """The number of one of a list, by which a key goes on after `depth` parts."""
    parts = key.split(".")
    where = ".".join(parts[:depth])
    if name.isdecimal() and int(name) < len(place):
        return int(name)
    have = f"{where} is a list of {len(place)}"
    if name.isdecimal():
        have += f": there is no number {name}, counted from 0"
    elif place:
        have += f"; name one by its number, such as {'.'.join([where, '0', *parts[depth:]])}"
    raise ConfigError(f"{key}: {have}")


def unset(cls: type[C]) -> C:
    """A component with its defaults, and None where there is none: `resolve` makes a whole one of it, or says what is
    missing."""
    return cls.model_construct(**{name: None for name, field in cls.model_fields.items() if field.is_required()})


def _at(component: Any, path: Sequence[str]) -> Any:
    """What stands at a dotted path below a component; None where nothing does."""
    for name in path:
        if isinstance(component, list | tuple):
            component = component[int(name)] if int(name) < len(component) else None
        else:
            component = component.get(name) if isinstance(component, Mapping) else getattr(component, name, None)
    return component


def _keep_shared(data: dict[str, Any], old: Any, new: Any, where: str) -> None:
    """Drops from `data`, which describes `old` and stands at `where`, the fields that type `new` of the same family
    does not have."""
    if isinstance(old, Component) and new is not UNSET:
        member = member_of(old.family(), new, where)
        for name in [k for k in data if k not in member.model_fields]:
            del data[name]

"""What was probably meant by a key or a value that does not fit: read off the fields and families of components.

What always holds: a hint is a key as it stands on a command line (`learner.lr`, `loss.type=ppo`); nothing is guessed
that would not fit.
"""

import difflib
import re
import typing
from collections.abc import Callable, Iterator, Mapping
from inspect import isabstract
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from longstride.core.errors import short, unknown
from longstride.core.locations import LOCATIONS

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from longstride.core.component import Component

PartOf = Callable[[Any], "type[Component] | None"]
"""The component class inside an annotation."""
MISSING = "it is missing, and has no default"
DEPTH = 3
"""How far below a component a key is looked for."""


def unknown_key(cls: "type[Component]", name: str, before: str, part_of: PartOf, data: Mapping[str, Any]) -> str:
    """The sentence for a key that a component has not, which `data` describes: with keys inside it that end in this
    name, or else, where no key is like it, with those whose documentation has the word; `before` stands before all of
    them. A key that a part has under another type alone is suggested with that type."""
    found = [(key, meaning, type_) for key, meaning, type_ in _keys(cls, part_of, data) if "." in key]
    fits = [(key, type_) for key, _, type_ in found if key.rpartition(".")[2] == name]
    if not fits and not difflib.get_close_matches(name, cls.model_fields, n=1, cutoff=0.5):
        word = re.compile(rf"\b{re.escape(name)}\b", re.I)
        fits = [(key, type_) for key, meaning, type_ in found if word.search(meaning)]
    fits = [(key, "") for key, type_ in fits if not type_] or fits
    nearest = min((key.count(".") for key, _ in fits), default=0)
    near = [(key, type_) for key, type_ in fits if key.count(".") == nearest]
    inside = dict.fromkeys(f"{before}{type_} {before}{key}" if type_ else f"{before}{key}" for key, type_ in near)
    return unknown("key", name, cls.model_fields, inside)


def _keys(
    cls: "type[Component]", part_of: PartOf, data: Any, before: str = "", type_: str = "", depth: int = DEPTH
) -> Iterator[tuple[str, str, str]]:
    """All keys that a component which `data` describes has, or could have: with its meaning, and with the setting of
    another type of a part without which it has not."""
    for name, field in cls.model_fields.items():
        yield f"{before}{name}", cls.meanings().get(name, ""), type_
        part, inside, place = part_of(field.annotation), data.get(name), f"{before}{name}{_step(field.annotation)}"
        if place.endswith(".0"):
            inside = inside[0] if inside else ()
        if part is None or depth == 1 or inside == ():
            continue
        inside = inside if isinstance(inside, Mapping) else {}
        members = {member.reference(): member for member in part.members().values()}
        now = members.get(str(inside.get("type")), None if isabstract(part) else part)
        if now:
            yield from _keys(now, part_of, inside, f"{place}.", type_, depth - 1)
        for reference, member in members.items():
            if member is not now and not type_:
                yield from _keys(member, part_of, {}, f"{place}.", f"{place}.type={reference}", 1)


def setting(part: "type[Component]", key: str, value: Any) -> str:
    """`; did you mean KEY.type=VALUE?`, or `KEY.FIELD=VALUE`: the setting inside a component that takes a value which
    came in its place; empty where there is none."""
    if isinstance(value, str):
        near = difflib.get_close_matches(value, member_names(part), n=1, cutoff=0.8)
        return f"; did you mean {key}.type={near[0]}?" if near else ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        for name, field in part.model_fields.items():
            kind: Any = field.annotation
            try:
                TypeAdapter(kind).validate_python(value)
            except ValidationError:
                continue
            return f"; did you mean {key}.{name}={value}?"
    return ""


def member_names(part: "type[Component]") -> list[str]:
    """What `type` may say for a component class, of all that is known of its members."""
    known = [member.reference() for member in part.members().values()]
    return list(dict.fromkeys([*known, *LOCATIONS.get(part.family().type_name(), ())]))


def fields_below(
    cls: "type[Component]", part_of: PartOf, before: str = "", depth: int = DEPTH
) -> "Iterator[tuple[str, FieldInfo]]":
    """All fields of a component and of those inside it, by dotted key."""
    for member in dict.fromkeys([cls, *cls.members().values()]):
        for name, field in member.model_fields.items():
            yield f"{before}{name}", field
            part = part_of(field.annotation)
            if part is not None and depth > 1:
                yield from fields_below(part, part_of, f"{before}{name}{_step(field.annotation)}.", depth - 1)


def _step(annotation: Any) -> str:
    """What stands in a key between a field and what is inside one of its components: the number in a list."""
    if typing.get_origin(annotation) in (tuple, list):
        return ".0"
    return next(filter(None, map(_step, typing.get_args(annotation))), "")


def sentences(error: Any) -> str:
    """What a pydantic `ValidationError` says, a line for each field."""
    lines = []
    for err in error.errors():
        place = ".".join(map(str, (error.title, *err["loc"])))
        got = "" if err["type"] == "missing" or not err["loc"] else f" (got {short(err['input'])})"
        what = MISSING if err["type"] == "missing" else err["msg"].removeprefix("Value error, ")
        lines.append(f"{place}: {what}{got}")
    return "\n".join(lines)

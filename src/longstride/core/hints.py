"""What was probably meant by a key or a value that does not fit: read off the fields and families of components.

What always holds: a hint is a key as it stands on a command line (`learner.lr`, `loss.type=ppo`); nothing is guessed
that would not fit.
"""

import difflib
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from longstride.core.errors import unknown
from longstride.core.locations import LOCATIONS

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from longstride.core.component import Component

PartOf = Callable[[Any], "type[Component] | None"]
"""The component class inside an annotation."""
DEPTH = 3
"""How far below a component a key is looked for."""


def unknown_key(cls: "type[Component]", name: str, before: str, part_of: PartOf) -> str:
    """The sentence for a key that a component has not: with keys inside it that end in this name, or else, where no key
    is like it, with those whose documentation has the word; `before` stands before all of them."""
    found = [(key, field) for key, field in fields_below(cls, part_of) if "." in key]
    keys = [key for key, _ in found if key.rpartition(".")[2] == name]
    if not keys and not difflib.get_close_matches(name, cls.model_fields, n=1, cutoff=0.5):
        word = re.compile(rf"\b{re.escape(name)}\b", re.I)
        keys = [key for key, field in found if word.search(field.description or "")]
    nearest = min((key.count(".") for key in keys), default=0)
    inside = dict.fromkeys(before + key for key in keys if key.count(".") == nearest)
    return unknown("key", name, cls.model_fields, inside)


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
                yield from fields_below(part, part_of, f"{before}{name}.", depth - 1)

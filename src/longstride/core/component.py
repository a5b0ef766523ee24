"""Components: a frozen typed model whose fields are documented numbers and whose method is the algorithm.

What always holds: a component is built from plain data (`build`) and turns into the plain data that builds it again
(`as_data`); an unknown key or name is refused with the nearest known one; a family (`BudgetSchedule`,
`ContextPolicy`, ...) is a component class with subclasses, and data for it names the subclass by `type`, its class
name in snake case. No torch.
"""

import difflib
import re
import typing
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from longstride.core.errors import ConfigError

C = TypeVar("C", bound="Component")


class Component(BaseModel):
    """Base of everything that a recipe is made of."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @classmethod
    def type_name(cls) -> str:
        """The class's name in snake case: what `type` says in a TOML file."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()

    @classmethod
    def members(cls) -> dict[str, "type[Component]"]:
        """The components that data for this class may name: itself, unless it is a family, and all below it."""
        below = cls.__subclasses__()
        found: dict[str, type[Component]] = {} if below else {cls.type_name(): cls}
        for sub in below:
            found |= sub.members()
        return found

    def as_data(self) -> dict[str, Any]:
        """Plain data (dicts, lists, numbers, strings) from which `build` makes an equal component; None is left out."""
        data: dict[str, Any] = {}
        if Component not in type(self).__bases__:  # a member of a family says which
            data["type"] = self.type_name()
        for name in type(self).model_fields:
            value = _plain(getattr(self, name))
            if value is not None:
                data[name] = value
        return data


def _plain(value: Any) -> Any:
    if isinstance(value, Component):
        return value.as_data()
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, PurePath) else value


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """`unknown WHAT 'nmae'; did you mean 'name'? Known: ...`: the sentence for every mistyped name."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown {what} {name!r}; {hint}Known: {', '.join(known)}"


def build(cls: type[C], data: Mapping[str, Any], where: str = "") -> C:
    """Builds a component of class `cls`, or of the member of its family that `data["type"]` names, from plain data.

    Args:
        cls: the class or family.
        data: field names to values; nested components as nested mappings.
        where: dotted place of `data` in the whole, for messages.

    Raises:
        ConfigError: names the dotted key, what was expected and what came; for an unknown key or type the nearest one.
    """
    data = dict(data)
    name = data.pop("type", None)
    members = cls.members()
    if name is None and len(members) > 1:
        raise ConfigError(f"{where or cls.type_name()}: `type` is missing; one of {', '.join(sorted(members))}")
    if name is not None and str(name) not in members:
        raise ConfigError(f"{where or cls.type_name()}: {unknown('type', str(name), members)}")
    member = members[name] if name is not None else next(iter(members.values()))
    values = {}
    for key, value in data.items():
        place = f"{where}.{key}" if where else key
        if key not in member.model_fields:
            raise ConfigError(f"{place}: {unknown('key', key, member.model_fields)}")
        part = _component_in(member.model_fields[key].annotation)
        values[key] = _build_inside(part, value, place) if part else value
    try:
        return typing.cast(C, member(**values))
    except ValidationError as e:
        raise ConfigError("\n".join(_explain(err, where or member.type_name()) for err in e.errors())) from None


def _build_inside(part: type[Component], value: Any, place: str) -> Any:
    if isinstance(value, Mapping):
        return build(part, value, place)
    if isinstance(value, list | tuple):
        return [_build_inside(part, v, f"{place}[{i}]") for i, v in enumerate(value)]
    return value


def _component_in(annotation: Any) -> type[Component] | None:
    """The component class inside an annotation such as `X`, `X | None` or `tuple[X, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, Component):
        return annotation
    return next((c for a in typing.get_args(annotation) if (c := _component_in(a))), None)


def _explain(err: Any, where: str) -> str:
    place = ".".join([where, *map(str, err["loc"])])
    message = err["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if err["type"] == "missing" else f"{place}: {message} (got {err['input']!r})"

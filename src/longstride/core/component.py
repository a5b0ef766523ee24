"""Components: a frozen typed model whose fields are documented numbers and whose method is the algorithm.

What always holds: a component is built from plain data (`build`) and turns into the plain data that builds it again
(`as_data`); an unknown key or name is refused with the nearest known one; a family (`Schedule`, `ContextPolicy`, ...)
is a component class with subclasses, and data for it names the subclass by `type`. No torch.

`type` is the class name in snake case for the members that the package brings, and `module:Class` for a member that
stands in a paper's folder or in a user's own module: reading it imports that module. Once it is imported, its name in
snake case is enough where no other member of the family has the same one. A member of a package that is not imported
by default (a browser, a cluster) is found by `core.locations.LOCATIONS`.
"""

import ast
import functools
import importlib
import inspect
import itertools
import re
import sys
import typing
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from inspect import isabstract
from pathlib import Path, PurePath
from types import UnionType
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from longstride.core.errors import ConfigError, unknown
from longstride.core.hints import MISSING, setting, unknown_key
from longstride.core.locations import LOCATIONS
from longstride.core.modules import import_module
from longstride.core.overriding import check_overriding

_ODD = re.compile("[\0\ud800-\udfff]")
C = TypeVar("C", bound="Component")
T = TypeVar("T")
OWN, PAPERS = "longstride.", ("longstride.papers.", "longstride.studies.")
SCRIPTS = ("__main__", "__mp_main__")
"""What Python calls the file that a process was started with, and its copy in a process that `multiprocessing` made."""


class Component(BaseModel):
    """Base of everything that a recipe is made of."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        if not cls.__module__.startswith(OWN):
            check_overriding(cls, lambda base: base.__module__.startswith(OWN))

    @classmethod
    def type_name(cls) -> str:
        """The class's name in snake case: what `type` says in a TOML file."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()

    @classmethod
    @functools.cache
    def meanings(cls) -> dict[str, str]:
        """What the docstrings below fields say, by field, as far as there are sources.

        They are read when they are asked for: pydantic's `use_attribute_docstrings` reads them as classes are made,
        which takes a second of every start.
        """
        found: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            if issubclass(base, Component) and not _parametrised(base):
                file = getattr(sys.modules.get(base.__module__), "__file__", None)
                found |= _docstrings(file).get(base.__qualname__, {}) if file else {}
        return found

    @classmethod
    def family(cls) -> "type[Component]":
        """The family that the class is a member of; itself where it is of none."""
        return next(c for c in cls.__mro__ if Component in c.__bases__)

    @classmethod
    def reference(cls) -> str:
        """What `type` says in a TOML file (see the module's docstring)."""
        module = module_name(cls)
        brought = module.startswith(OWN) and not module.startswith(PAPERS)
        return cls.type_name() if brought else f"{module}:{cls.__qualname__}"

    @classmethod
    def members(cls) -> dict[str, "type[Component]"]:
        """The components that data for this class may name: itself, unless it is abstract, and all below it.

        Each has its `type_name`, or its `reference` where others have the same one, so that a class of a user's own
        never stands for one of the package."""
        found = {member.reference(): member for member in _below(cls)}
        times = Counter(member.type_name() for member in found.values())
        return {m.type_name() if times[m.type_name()] == 1 else name: m for name, m in found.items()}

    def as_data(self) -> dict[str, Any]:
        """Plain data (dicts, lists, numbers, strings) from which `build` makes an equal component; None is left out."""
        data: dict[str, Any] = {}
        if Component not in type(self).__bases__:  # a member of a family says which
            data["type"] = self.reference()
        for name in type(self).model_fields:
            value = _plain(getattr(self, name))
            if value is not None:
                data[name] = value
        return data

    def replace(self, **changes: Any) -> Self:
        """A validated copy with other fields.

        A mapping changes the named fields of the component that stands in a field, and of those inside it; with a
        `type` it is another member of the family, which keeps the fields that both have. In a field that maps names to
        components, a mapping that names only some of these and no `type` changes each; so it does in a field that holds
        several, by their place (`{"0": {"width": 8}}`). Anything else takes the field's place whole.

        Raises:
            ConfigError: an unknown field (the nearest one is named), or a value that does not fit.
        """
        return self._replaced(changes, type(self).type_name())

    def _replaced(self, changes: Mapping[str, Any], where: str) -> Self:
        cls, values = type(self), {name: getattr(self, name) for name in type(self).model_fields}
        for name, value in changes.items():
            place = _join(where, name)
            _check_key(cls, name, place, self.as_data())
            old = values[name]
            if isinstance(value, Mapping) and isinstance(old, Component):
                values[name] = old._replaced(value, place) if "type" not in value else _retyped(old, value, place)
            elif _changes_parts(value, parts := _parts(old)):
                parts |= {key: parts[key]._replaced(of, _join(place, key)) for key, of in value.items()}
                whole = parts if isinstance(old, Mapping) else tuple(parts.values())
                values[name] = _build_field(cls.model_fields[name].annotation, whole, place)
            else:
                values[name] = _build_field(cls.model_fields[name].annotation, value, place)
        return typing.cast(Self, _validated(cls, values, where))


def _parts(old: Any) -> dict[str, Any]:
    """What a field holds by name, or by place; empty where it holds one thing."""
    if isinstance(old, Mapping):
        return dict(old)
    return {str(k): of for k, of in enumerate(old)} if isinstance(old, tuple) else {}


def _changes_parts(value: Any, parts: Mapping[str, Any]) -> bool:
    """Whether a value for a field that holds these changes some of them where they stand."""
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(of, Mapping) and "type" not in of for of in value.values())
        and all(isinstance(parts.get(key), Component) for key in value)
    )


def module_name(cls: type) -> str:
    """The name under which the module of a class is imported: that of its file where it is the running script, which
    from now on can be imported under this name and is not run again for it. A notebook has no other name."""
    if cls.__module__ not in SCRIPTS:
        return cls.__module__
    script = sys.modules[cls.__module__]
    if script.__spec__ is not None:
        name = script.__spec__.name
    elif file := getattr(script, "__file__", None):  # the main module of a notebook has none
        name = Path(file).stem
    else:
        return cls.__module__
    sys.modules.setdefault(name, script)
    return name


def _retyped(old: Component, data: Mapping[str, Any], where: str) -> Component:
    """The member of the family of `old` that `data` names, with the fields of `old` that both have."""
    family = old.family()
    member = member_of(family, data["type"], where)
    kept = {name: getattr(old, name) for name in type(old).model_fields if name in member.model_fields}
    given = {name: _plain(value) for name, value in (kept | dict(data)).items() if value is not None}
    return build(family, given, where)


def _parametrised(cls: type[Component]) -> bool:
    """Whether it is what stands between a generic component and a subclass: `Walked[Search]`."""
    return cls.__pydantic_generic_metadata__["origin"] is not None


def _below(cls: type[Component]) -> Iterator[type[Component]]:
    """A class, unless it is abstract, and all below it."""
    if not (isabstract(cls) or _parametrised(cls)):
        yield cls
    for sub in cls.__subclasses__():
        yield from _below(sub)


def _plain(value: Any) -> Any:
    if isinstance(value, Component):
        return value.as_data()
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, PurePath) else value


def parts_of(component: Component, where: str = "") -> Iterator[tuple[str, Component]]:
    """Every component inside another one, with its dotted place there, which begins with `where`."""
    for name in type(component).model_fields:
        yield from _inside(getattr(component, name), _join(where, name))


def _inside(value: Any, place: str) -> Iterator[tuple[str, Component]]:
    if isinstance(value, Component):
        yield place, value
        yield from parts_of(value, place)
    elif isinstance(value, Mapping):
        for key, inside in value.items():
            yield from _inside(inside, f"{place}.{key}")
    elif isinstance(value, list | tuple):
        for k, inside in enumerate(value):
            yield from _inside(inside, f"{place}[{k}]")


def apart(component: C) -> C:
    """A copy in which every place has an object of its own, so that an object tells its place."""
    fields = {name: _apart(getattr(component, name)) for name in type(component).model_fields}
    return component.model_copy(update=fields)


def _apart(value: Any) -> Any:
    if isinstance(value, Component):
        return apart(value)
    if isinstance(value, dict):
        return {key: _apart(inside) for key, inside in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_apart, value))
    return value


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
    member = member_of(cls, data.pop("type", None), where)
    values = {}
    for key, value in data.items():
        place = _join(where, key)
        _check_key(member, key, place, data)
        values[key] = _build_field(member.model_fields[key].annotation, value, place)
    return typing.cast(C, _validated(member, values, where))


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _check_key(cls: type[Component], key: str, place: str, data: Mapping[str, Any]) -> None:
    """Refuses a key that a component has not, which `data` describes."""
    if key not in cls.model_fields:
        raise ConfigError(f"{place}: {unknown_key(cls, key, place.removesuffix(key), component_in, data)}")


def _validated(cls: type[Component], values: Mapping[str, Any], where: str) -> Component:
    for name, value in values.items():
        if (odd := _odd_text(value)) is not None:
            raise ConfigError(f"{_join(where, name)}: expected a text without NUL or half a character (got {odd!r})")
    try:
        return cls(**values)
    except ValidationError as e:
        lines = [_explain(err, cls, where) for err in _telling(e.errors())]
        raise ConfigError("\n".join(dict.fromkeys(lines))) from None


def _odd_text(value: Any) -> str | None:
    """A text in plain data that no file can hold and no system call takes."""
    if isinstance(value, str):
        return value if _ODD.search(value) else None
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return next((odd for part in parts if (odd := _odd_text(part)) is not None), None)


@functools.cache
def _docstrings(file: str) -> dict[str, dict[str, str]]:
    """The texts that stand below annotated names in the classes of a file, by class; none where it is no source."""
    with suppress(OSError, ValueError, SyntaxError):
        return dict(_classes(ast.parse(Path(file).read_text(encoding="utf-8"))))
    return {}


def _classes(node: ast.AST, before: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """The texts in each class below a node, by its qualified name."""
    for inside in ast.iter_child_nodes(node):
        if isinstance(inside, ast.ClassDef):
            name = f"{before}{inside.name}"
            yield (
                name,
                {
                    field.target.id: inspect.cleandoc(below.value.value)
                    for field, below in itertools.pairwise(inside.body)
                    if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
                    if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
                    if isinstance(below.value.value, str)
                },
            )
            yield from _classes(inside, f"{name}.")
        elif isinstance(inside, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _classes(inside, f"{before}{inside.name}.<locals>.")
        elif isinstance(inside, ast.stmt):
            yield from _classes(inside, before)


def find(registry: Mapping[str, T], kind: str, name: str) -> T | None:
    """What a registry holds under a name, after importing the module that `LOCATIONS` has for it; None if nothing."""
    if name not in registry and name in LOCATIONS.get(kind, {}):
        importlib.import_module(LOCATIONS[kind][name])
    return registry.get(name)


def member_of(family: type[C], name: Any, where: str = "") -> type[C]:
    """The member of a family that a `type` names; its only one where `name` is None.

    Raises:
        ConfigError: there is none of that name, or it cannot be imported.
    """
    if name is None and not isabstract(family):
        return family
    place, away = where or family.type_name(), LOCATIONS.get(family.family().type_name(), {})
    name = name if name is None else str(name)
    if name and ":" in name:
        return _imported(family, name, place)
    if name in away:  # also where a class of a user's own is called the same
        importlib.import_module(away[name])
    members = family.members()
    known = members | away if family is family.family() else members  # of others it is not known whether they would do
    if name is None:
        if len(members) > 1:
            raise ConfigError(f"{place}: `type` is missing; one of {', '.join(sorted(known))}")
        return typing.cast(type[C], next(iter(members.values())))
    if name not in members:
        several = [other for other, member in members.items() if member.type_name() == name]
        raise ConfigError(f"{_join(where, 'type') if where else place}: {unknown('type', name, known, several)}")
    return typing.cast(type[C], members[name])


def _imported(family: type[C], name: str, place: str) -> type[C]:
    """The class that `module:Class` names."""
    module, _, qualified = name.partition(":")
    if "<locals>" in qualified:
        raise ConfigError(
            f"{place}: {name} is a class made inside a function, which nobody else can import; define it at the top of "
            "a module"
        )
    try:
        found: Any = import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ConfigError, AttributeError) as e:
        raise ConfigError(f"{place}: type {name!r} cannot be imported as module:Class: {e}") from e
    if not (isinstance(found, type) and issubclass(found, family)):
        raise ConfigError(f"{place}: {name} is no {family.type_name()}; expected a subclass of {family.__name__}")
    return found


def _build_field(annotation: Any, value: Any, place: str) -> Any:
    """A field's value, with components built where data stands for them; a field that is a table has one for each
    key."""
    part = component_in(annotation)
    if part is None:
        return value
    if typing.get_origin(annotation) in (dict, Mapping) and isinstance(value, Mapping):
        return {key: _build_inside(part, v, f"{place}.{key}") for key, v in value.items()}
    return _build_inside(part, value, place)


def _build_inside(part: type[Component], value: Any, place: str) -> Any:
    if isinstance(value, Mapping):
        return build(part, value, place)
    if isinstance(value, list | tuple):
        return [_build_inside(part, v, f"{place}[{i}]") for i, v in enumerate(value)]
    return value


def component_in(annotation: Any) -> type[Component] | None:
    """The component class inside an annotation such as `X`, `X | None` or `tuple[X, ...]`."""
    if isinstance(annotation, type) and issubclass(annotation, Component):
        return annotation
    return next((c for a in typing.get_args(annotation) if (c := component_in(a))), None)


def is_either(annotation: Any) -> bool:
    """Whether a field holds a component, or something plain in its place (`str | ChatAPI`)."""
    kinds = typing.get_args(annotation) if typing.get_origin(annotation) in (typing.Union, UnionType) else ()
    components = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Component)]
    return 0 < len(components) < len([kind for kind in kinds if kind is not type(None)])


def _telling(errors: list[Any]) -> list[Any]:
    """Errors without those that another one explains: that a number is no component, where the same number does not fit
    the other kind that its field takes either; that a list is too short, where what is in it does not fit."""

    def explained(err: Any) -> bool:
        field = [other for other in errors if other is not err and other["loc"][:1] == err["loc"][:1]]
        if err["type"] == "too_short":
            return any(len(other["loc"]) > len(err["loc"]) for other in field)
        number = err["type"] == "model_type" and not isinstance(err["input"], str)
        return number and any(o["type"] != "model_type" and o["input"] is err["input"] for o in field)

    return [err for err in errors if not explained(err)]


def _explain(err: Any, cls: type[Component], where: str) -> str:
    message = err["msg"].removeprefix("Value error, ")
    if not err["loc"]:  # a rule about several fields has the whole object as its input, which says nothing to a reader
        return f"{where or cls.type_name()}: {message}"
    name, value = err["loc"][0], err["input"]
    annotation = cls.model_fields[name].annotation if name in cls.model_fields else None
    inside = err["loc"][1:]
    if typing.get_origin(annotation) in (typing.Union, UnionType):
        inside = ()  # the rest names the alternative that did not fit, not a place
    place, part = _join(where, ".".join(map(str, (name, *inside)))), component_in(annotation)
    if err["type"] == "missing":
        return f"{place}: {MISSING}"
    if err["type"] == "model_type" and part is not None:
        plain = is_either(annotation) and not isinstance(value, str)  # it was meant for what is no component
        hint = "" if plain else setting(part, place, value)
        return f"{place}: expected a table, for {part.__name__} (got {_brief(value)}){hint}"
    if err["type"] in ("tuple_type", "list_type"):
        example = f", such as {[value]!r}" if isinstance(value, int | float | str) else ""
        message = f"expected a list{example}"
    return f"{place}: {message} (got {_brief(value)})"


def _brief(value: Any) -> str:
    text = repr(value.as_data() if isinstance(value, Component) else value)
    return text if len(text) <= 100 else text[:97] + "..."

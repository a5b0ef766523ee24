"""Calls of tools: described to the agent, read from its words, checked against a JSON schema.

What always holds: a call that does not fit is one sentence for the agent and never raises, whatever was said; a schema
is data of a server, so it refers to nothing outside itself, and its patterns, which could take for ever, are left to
the server; nothing is executed here.
"""

import functools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from longstride.adapters.foreign import require, said, short
from longstride.core.component import unknown
from longstride.core.errors import EnvFailure

MAX_ARGUMENTS = 20_000
"""Characters of a call that are read."""
MAX_DESCRIPTION = 300
"""Characters of a tool's description that the agent reads."""
_CALL = re.compile(r"([^\s{]+)\s*(.*)", re.DOTALL)


class Call(NamedTuple):
    """A tool and its arguments, which fit its schema."""

    tool: str
    arguments: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.tool} {json.dumps(self.arguments)}"


@dataclass(frozen=True)
class Tool:
    """What can be called."""

    name: str
    schema: Mapping[str, Any]
    """JSON schema of its arguments."""
    description: str = ""

    @property
    def line(self) -> str:
        """Name, arguments (`?` behind those that may be left out) and description, in one line."""
        line = f"{self.name} {signature(self.schema)}"
        words = " ".join(self.description.split())[:MAX_DESCRIPTION]
        return f"{line}: {words}" if words else line


def parse(text: str, tools: Mapping[str, Tool]) -> Call | str:
    """The call in a policy's text, `NAME {"argument": value}` after the last `Action:`, or what is wrong with it."""
    found = _CALL.fullmatch(said(text))
    if found is None:
        return "no action was given"
    name, rest = found.groups()
    if name not in tools:
        return unknown("tool", name[:40], tools)
    arguments = read_object(rest or "{}")
    if isinstance(arguments, str):
        return f"{name} takes {signature(tools[name].schema)}; {arguments}"
    problem = misfit(arguments, tools[name].schema, f"tool {name!r}")
    return f"{name}: {problem}" if problem else Call(name, arguments)


def read_object(text: str) -> dict[str, Any] | str:
    """A JSON object, or what is wrong with it."""

    if len(text) > MAX_ARGUMENTS:
        return f"{len(text)} characters are too many, {MAX_ARGUMENTS} are read"
    try:
        found = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except json.JSONDecodeError as e:
        return f"{short(text, 40)} is not JSON: {e.msg} at character {e.pos + 1}"
    except (ValueError, RecursionError) as e:
        return f"{short(text, 40)} cannot be read: {str(e)[:80]}"
    return found if isinstance(found, dict) else f"{short(text, 40)} is not a JSON object"


def misfit(arguments: Mapping[str, Any], schema: Mapping[str, Any], what: str) -> str:
    """Where arguments do not fit a schema, in words; empty where they do.

    Raises:
        EnvFailure: the schema is none, or refers to something outside itself; `what` says whose it is.
    """
    jsonschema, referencing = require("jsonschema", "mcp"), require("referencing", "mcp")
    try:
        _validator().check_schema(schema)
        errors = _validator()(schema, registry=referencing.Registry()).iter_errors(arguments)
        first = min(errors, key=lambda e: list(map(str, e.absolute_path)), default=None)
    except jsonschema.SchemaError as e:
        raise EnvFailure(f"the schema of {what} is not a JSON schema: {e.message[:200]}") from e
    except (referencing.exceptions.Unresolvable, RecursionError) as e:
        raise EnvFailure(f"the schema of {what} cannot be followed: {str(e)[:200]}") from e
    except OverflowError:
        return "a number is too large"
    if first is None:
        return ""
    place = ".".join(map(str, first.absolute_path))
    return f"{place}: {first.message[:200]}" if place else first.message[:200]


def signature(schema: Mapping[str, Any]) -> str:
    """The arguments in short: `{"query": string, "limit": integer?}`."""
    required = schema.get("required", ())
    fields = (f'"{name}": {_kind(kind)}{"" if name in required else "?"}' for name, kind in _properties(schema).items())
    return "{" + ", ".join(fields) + "}"


def described(tools: Sequence[Tool], example: str) -> str:
    """How to call, for the agent."""
    lines = "\n".join(tool.line for tool in tools)
    return f"End each turn with Action: and one of these, with its arguments in JSON, such as {example}.\n{lines}"


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _kind(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if isinstance(choices := schema.get("enum"), list):
        return "|".join(json.dumps(choice) for choice in choices[:10])
    kind = schema.get("type", "any")
    return "|".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is not a number of JSON")
    return value


@functools.cache
def _validator() -> Any:
    """Of JSON schemas, without what searches for patterns."""
    jsonschema = require("jsonschema", "mcp")
    base = jsonschema.Draft202012Validator

    def skip(*_: Any) -> None:
        pass

    def additional(validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        if "patternProperties" not in schema:
            yield from base.VALIDATORS["additionalProperties"](validator, allowed, instance, schema)

    skipped = dict.fromkeys(("pattern", "patternProperties", "unevaluatedProperties"), skip)
    return jsonschema.validators.extend(base, {**skipped, "additionalProperties": additional})

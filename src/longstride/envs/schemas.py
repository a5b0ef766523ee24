"""Arguments of a tool against its JSON schema, which a stranger wrote.

What always holds: a schema is data, so it refers to nothing outside itself; it has at most `MAX_SCHEMA` characters, and
checking against it takes at most `SECONDS` of the processor. So a check needs no thread of its own: a schema that takes
longer holds the others up once, and its episode is over. What could take for ever in one step is left to whoever wrote
the schema: patterns, whether items are unique, and what other schemas have evaluated. Whatever is wrong with a schema
is an `EnvFailure` of its owner.
"""

import functools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from longstride.core.errors import EnvFailure, LongstrideError, require
from longstride.core.plain import plain

MAX_SCHEMA = 1 << 16
"""Characters of a schema, as JSON."""
MAX_SCHEMAS = 1 << 18
"""Characters of all schemas of a server: some 300 tools."""
SECONDS = 0.25
"""Of the processor, for one check: a hundred times what honest ones take."""
LEFT_OUT = ("pattern", "patternProperties", "uniqueItems", "unevaluatedItems", "unevaluatedProperties")
"""Keywords that are not looked at: one step of theirs may take for ever."""
_until: ContextVar[float] = ContextVar("until")
"""When the check that is under way has to end, by the processor time of its thread."""


class _RefusedError(Exception):
    """A schema is not followed; the message goes on after its name."""


def misfit(arguments: Mapping[str, Any], schema: Mapping[str, Any], what: str) -> str:
    """Where arguments do not fit a schema, in words; empty where they do.

    Raises:
        EnvFailure: the schema is none, is too large, refers to something outside itself, or takes too long to check;
            `what` says whose it is.
    """
    with _bounded(what):
        validator = _checked(_text(schema))
        try:
            errors = validator.iter_errors(arguments)
            first = min(errors, key=lambda e: list(map(str, e.absolute_path)), default=None)
        except OverflowError:
            return "a number is too large"
    if first is None:
        return ""
    place = ".".join(map(str, first.absolute_path))
    return plain(f"{place[:200]}: {first.message[:200]}" if place else first.message[:200])


def check_schemas(schemas: Mapping[str, Mapping[str, Any]]) -> None:
    """Checks the schemas of a server before anybody uses them: what is said of their arguments, and templates, rely on
    it. May take seconds for a server that means it, so it belongs into a thread.

    Args:
        schemas: by what a message calls them.

    Raises:
        EnvFailure: as `misfit`, or they are too large together.
    """
    size = 0
    for what, schema in schemas.items():
        with _bounded(what):
            size += len(text := _text(schema))
            _checked(text)
        if size > MAX_SCHEMAS:
            raise EnvFailure(
                f"the schemas up to that of {what} have more than {MAX_SCHEMAS} characters; take a server that has less"
            )


@contextmanager
def _bounded(what: str) -> Iterator[None]:
    """For the work on one schema. Raises: EnvFailure for all that is wrong with it."""
    token = _until.set(time.thread_time() + SECONDS)
    try:
        yield
    except LongstrideError:
        raise
    except _RefusedError as e:
        raise EnvFailure(f"the schema of {what} {e}") from None
    except BaseException as e:  # the library was not made for strangers, and panics where the stack is full
        if not isinstance(e, Exception) and type(e).__name__ != "PanicException":
            raise
        raise EnvFailure(f"the schema of {what} cannot be followed: {type(e).__name__}: {str(e)[:200]}") from e
    finally:
        _until.reset(token)


def _text(schema: Mapping[str, Any]) -> str:
    text = json.dumps(schema)
    if len(text) > MAX_SCHEMA:
        raise _RefusedError(f"has {len(text)} characters; expected at most {MAX_SCHEMA}")
    return text


@functools.lru_cache(1024)
def _checked(text: str) -> Any:
    """What validates by a schema that is one; each text is checked once in a process."""
    schema, referencing = json.loads(text), require("referencing", "tools")
    kind, known = _validator(), require("jsonschema_specifications", "tools").REGISTRY
    for wrong in kind(kind.META_SCHEMA, registry=known).iter_errors(schema):
        raise _RefusedError(f"is not a JSON schema: {wrong.message[:200]}")
    return kind(schema, registry=referencing.Registry())


@functools.cache
def _validator() -> Any:
    """Of JSON schemas, with a look at the clock before each step."""
    jsonschema = require("jsonschema", "tools")
    base = jsonschema.Draft202012Validator

    def timed(check: Callable[..., Any]) -> Callable[..., Any]:
        def keyword(*args: Any) -> Any:
            if time.thread_time() > _until.get():
                raise _RefusedError(f"takes more than {SECONDS:g} s to check; expected one that is simpler")
            return check(*args)

        return keyword

    def additional(validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[Any]:
        if "patternProperties" not in schema:
            yield from base.VALIDATORS["additionalProperties"](validator, allowed, instance, schema)

    steps = {**base.VALIDATORS, "additionalProperties": additional, **dict.fromkeys(LEFT_OUT, lambda *_: None)}
    kind = jsonschema.validators.extend(base, {name: timed(check) for name, check in steps.items()})
    names = {field.name: field.alias for field in require("attrs", "tools").fields(kind) if field.init}

    def evolve(self: Any, **changes: Any) -> Any:
        return kind(**{alias: getattr(self, name) for name, alias in names.items()} | changes)

    kind.evolve = evolve  # the library's follows "$schema" of a part, to a validator that looks at no clock
    return kind

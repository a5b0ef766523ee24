"""Typed errors. Each says what was expected, what came, and what to do; the command line prints them without a
traceback.

What always holds: a `LongstrideError` is a user's mistake or a known trouble of the world. A bug in Longstride is never
turned into one: it keeps its traceback. What a message repeats of others' words does nothing in a terminal.
"""

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from longstride.core.plain import plain
from longstride.core.secrets import hidden


class LongstrideError(Exception):
    """Base of all errors that are shown to a person as one message, which is plain text whatever it repeats."""

    def __str__(self) -> str:
        return hidden(plain(super().__str__()))


class ConfigError(LongstrideError):
    """A recipe, a TOML file or an override that cannot be built (unknown key, wrong type, value out of range)."""


class TaskError(LongstrideError):
    """A task that cannot be read or built: unknown site or template, malformed line (the line number is named)."""


class ModelError(LongstrideError):
    """A model folder or name that cannot be loaded, or lacks what the policy needs (tokenizer, chat template, EOS)."""


class RunError(LongstrideError):
    """A run folder that is missing, of another recipe, or damaged; a checkpoint that cannot be resumed."""


class MissingExtra(LongstrideError):
    """An optional package is needed and not installed; the message names the command that installs it."""


class OwnCodeError(LongstrideError):
    """A part of the user's own that does not keep to its interface: it returned what it must not. What such a part
    raises is passed on as it is."""


class EnvFailure(LongstrideError):
    """Infrastructure trouble inside an environment. It makes a trajectory *failed*: never a reward, never a sample."""


class JudgeFailure(LongstrideError):
    """A judge that gave no verdict (unreachable, refusing, unreadable). Like `EnvFailure` it makes a trajectory
    *failed*: silence is never a reward of 0."""


class EngineFailure(LongstrideError):
    """Infrastructure trouble inside an engine (a server that does not answer, a full cache)."""


class LongstrideWarning(UserWarning):
    """Something that is probably not meant and does not stop a run; the command line prints it as one line."""


class ChangedWarning(LongstrideWarning):
    """A file of the user's own is another one now than when a run was made with it; the command line prints one line
    for a file, however many runs there are."""

    def __init__(self, file: object, run: object) -> None:
        super().__init__(f"{file} has changed since {run} was made with it")
        self.file, self.run = str(file), str(run)


MOST_NAMES = 60
"""Names that a message lists."""


def unknown(what: str, name: str, known: Iterable[str], elsewhere: Iterable[str] = ()) -> str:
    """`unknown WHAT 'nmae'; did you mean 'name'? Known: ...`: the sentence for every mistyped name.

    Args:
        what: kind of thing that is named.
        name: what came.
        known: names that would do.
        elsewhere: names of another place that may be meant.
    """
    known, name = sorted(known), name[:200]
    more = len(known) - MOST_NAMES
    names = ", ".join(known if more <= 0 else [*known[:MOST_NAMES], f"and {more} more"])
    near = [*elsewhere, *difflib.get_close_matches(name, known, n=1, cutoff=0.5)][:3]
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"unknown {what} {name!r}; {hint}Known: {names}"


def require(module: str, extra: str) -> ModuleType:
    """A module of an optional package.

    Raises:
        MissingExtra: it is not installed; the message names the extra that brings it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise MissingExtra(f"{module} is needed here ({e}); install it: pip install 'longstride[{extra}]'") from e


def short(value: Any, limit: int = 80) -> str:
    """A value in one line, for a message."""
    try:
        line = " ".join(repr(value).split())
    except Exception:  # of somebody else's object
        line = f"({type(value).__name__}, which cannot be shown)"
    return line if len(line) <= limit else line[: limit - 3] + "..."

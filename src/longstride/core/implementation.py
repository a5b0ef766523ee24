"""The work of a component that is data alone, where that needs what data does not: torch, the client of a server.

A function that does such work stands in a module of its own, which imports the data and says whose work it does
(`implements`). `longstride.wings` names that module, and it is imported when the work is first asked for
(`implementation`); so recipes are read, listed and printed without it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from longstride.core.component import Component, find

F = TypeVar("F", bound=Callable[..., Any])

IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {}
"""By reference of the class (`Component.reference`)."""


def implements(cls: type[Component], work: str = "") -> Callable[[F], F]:
    """Decorates the function, or the class, that takes a component of class `cls` first and does its work; where there
    are several, the one that is called `work`."""

    def register(function: F) -> F:
        IMPLEMENTATIONS[_name(cls, work)] = function
        return function

    return register


def implementation(cls: type[Component], work: str = "") -> Callable[..., Any]:
    """What does the work of a class, or of the nearest class above it for which something does; see `implements`.

    Raises:
        NotImplementedError: nothing does.
    """
    for each in cls.__mro__:
        if issubclass(each, Component) and (found := find(IMPLEMENTATIONS, "implementation", _name(each, work))):
            return found
    raise NotImplementedError(f"nothing does the work of {cls.__name__}; decorate a function with @implements")


def _name(cls: type[Component], work: str) -> str:
    return f"{cls.reference()}.{work}" if work else cls.reference()

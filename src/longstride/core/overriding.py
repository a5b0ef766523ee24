"""What a class of a user's own overrides, held against what it overrides as soon as the class is made.

What always holds: a method that could not be called as the package calls it, that is a coroutine where none is
expected or none where one is, or that yields where a result is expected, is one message that names it; nobody has to
wait for the call. Classes of the package itself are held to this by their types.
"""

import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from longstride.core.errors import OwnCodeError

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def check_overriding(cls: type, ours: Callable[[type], bool]) -> None:
    """Holds each method that `cls` defines against the one of that name in the nearest class for which `ours` says
    True.

    Raises:
        OwnCodeError: it does not fit.
    """
    for name, method in vars(cls).items():
        above = next((vars(base)[name] for base in cls.__mro__[1:] if ours(base) and name in vars(base)), None)
        if trouble := _trouble(method, above):
            raise OwnCodeError(f"{cls.__name__}.{name} {trouble}")


def _trouble(method: Any, above: Any) -> str | None:
    """What is wrong with a member of a class; None where nothing is, or both are not functions or properties."""
    if isinstance(method, FunctionType) and isinstance(above, property):
        return "is a method; write @property above it"
    if isinstance(method, property) and isinstance(above, FunctionType):
        return "is a property; expected a method, without @property"
    if not (isinstance(method, FunctionType) and isinstance(above, FunctionType)):
        return None
    expected = inspect.signature(above)
    if not _takes(inspect.signature(method), expected):
        return f"takes {_parameters(inspect.signature(method))}; expected {_parameters(expected)}"
    if inspect.iscoroutinefunction(above) and not inspect.iscoroutinefunction(method):
        return f"is no coroutine; write `async def {above.__name__}`"
    if inspect.iscoroutinefunction(method) and not _awaited(above, expected):
        return f"is a coroutine, and is not awaited; write `def {above.__name__}`"
    if inspect.isgeneratorfunction(method) and not _iterated(above, expected):
        return "yields; expected it to return all at once"
    return None


def _takes(signature: inspect.Signature, expected: inspect.Signature) -> bool:
    """Whether a call that fits `expected` fits `signature`: with all parameters as they stand, with those alone that
    have no default, and with the others by their names."""
    parameters = [p for p in expected.parameters.values() if p.kind not in _VARIADIC]
    needed = [p for p in parameters if p.default is inspect.Parameter.empty]
    by_name = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for p in parameters
        if p.default is not inspect.Parameter.empty and p.kind is not inspect.Parameter.POSITIONAL_ONLY
    ]
    return all(_binds(signature, chosen) for chosen in (parameters, needed, [*needed, *by_name]))


def _binds(signature: inspect.Signature, parameters: Iterable[inspect.Parameter]) -> bool:
    named = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    placed = [p for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    try:
        signature.bind(*[None] * len(placed), **dict.fromkeys(named))
    except TypeError:
        return False
    return True


def _awaited(above: FunctionType, expected: inspect.Signature) -> bool:
    returns = _returned(expected)
    return inspect.iscoroutinefunction(above) or any(word in returns for word in ("Awaitable", "Coroutine"))


def _iterated(above: FunctionType, expected: inspect.Signature) -> bool:
    if inspect.isgeneratorfunction(above) or inspect.isasyncgenfunction(above):
        return True
    returned = _returned(expected).partition("[")[0].rpartition(".")[2]
    return returned in ("Iterator", "Iterable", "Generator", "Any")


def _returned(expected: inspect.Signature) -> str:
    """How the type of a result is written; empty where it is not."""
    returns: Any = expected.return_annotation
    return returns if isinstance(returns, str) else "" if returns is inspect.Signature.empty else repr(returns)


def _parameters(signature: inspect.Signature) -> str:
    """(self, a, b=...) without types."""
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))

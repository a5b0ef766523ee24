"""What an environment returns, checked where it is called: by an episode, and by whatever wraps an environment.

What always holds: what passes is of the types that the interface names, its rewards are finite numbers and its flags
true or false, of Python's own types where they came as others (NumPy's, say, which JSON does not have); what does not
is one message with the file, the class, the method, what came and what was expected.
"""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from longstride.core.errors import OwnCodeError, short
from longstride.core.foreign import LARGEST, float_of, staying
from longstride.envs.base import Env, Observation, Step
from longstride.envs.tools import Manual

T = TypeVar("T")


async def ask(kind: type[T], env: Env, name: str, *args: Any) -> T:
    """What a method of an environment, a coroutine, returns.

    Raises:
        OwnCodeError: there is none of that name, it is no coroutine, or it returns something else.
        EnvFailure: it asks for the end of the program (`sys.exit`).
    """
    method = getattr(env, name, None)
    if method is None:
        raise OwnCodeError(f"{_place(type(env))}{type(env).__name__} has no {name}: write `async def {name}(...)`")
    with staying(lambda: _method(method)):
        answer = method(*args)
        if not isinstance(answer, Awaitable):
            raise OwnCodeError(f"{_method(method)} is no coroutine: write `async def {method.__name__}`")
        return checked(kind, await answer, lambda: _method(method))


def checked(kind: type[T], answer: Any, place: Callable[[], str]) -> T:
    """An answer, if it is of its kind.

    Raises:
        OwnCodeError: it is not; `place` says whose answer it is, where that is asked for.
    """
    if not isinstance(answer, kind):
        raise OwnCodeError(f"{place()} returned {_brief(answer)}; expected {_article(kind.__name__)}")
    if isinstance(answer, Step):
        if not isinstance(answer.observation, Observation):
            raise OwnCodeError(
                f"{place()}: the step's observation is {_brief(answer.observation)}; expected an Observation"
            )
        answer.reward = number(answer.reward, "the reward", place)
        answer.terminated = flag(answer.terminated, "terminated", place)
        answer.truncated = flag(answer.truncated, "truncated", place)
        for name in ("action", "answer", "error"):
            _check(getattr(answer, name), str | None, name, "a str or None", place)
        _check(answer.info, dict, "info", "a dict", place)
    seen = answer.observation if isinstance(answer, Step) else answer
    if isinstance(seen, Observation):
        if not isinstance(seen.content, str | tuple):
            raise OwnCodeError(
                f"{place()}: the observation is of {_brief(seen.content)}; expected a str, or a tuple of texts and "
                "Media"
            )
        for name in ("goal", "url", "speaker"):
            _check(getattr(seen, name), str, name, "a str", place)
        _check(seen.manual, Manual | None, "manual", "a Manual or None", place)
        _check(seen.tools, tuple, "tools", "a tuple of Tool", place)
    return answer


def number(value: Any, what: str, place: Callable[[], str]) -> float:
    """A value as a finite number that can be added up.

    Raises:
        OwnCodeError: it is none; `place` says whose it is.
    """
    if type(value) is float and -LARGEST <= value <= LARGEST:  # the common case, which is asked at every turn
        return value
    found = float_of(value)
    if not abs(found) <= LARGEST:
        raise OwnCodeError(
            f"{place()}: {what} is {_brief(value)}; expected a finite number, of at most {LARGEST:g} in size"
        )
    return found


def flag(value: Any, what: str, place: Callable[[], str]) -> bool:
    """A value as true or false.

    Raises:
        OwnCodeError: it is neither; `place` says whose it is.
    """
    if value is not True and value is not False and float_of(value) not in (0.0, 1.0):
        raise OwnCodeError(f"{place()}: {what} is {_brief(value)}; expected True or False")
    return bool(value)


def _check(value: Any, kind: Any, what: str, expected: str, place: Callable[[], str]) -> None:
    if not isinstance(value, kind):
        raise OwnCodeError(f"{place()}: {what} is {_brief(value)}; expected {expected}")


def _method(method: Callable[..., Any]) -> str:
    """By file, line and name."""
    return f"{_place(method)}{type(getattr(method, '__self__', method)).__name__}.{method.__name__}"


def _brief(value: Any) -> str:
    """A value and its type, for a message."""
    return f"{short(value, 60)} ({type(value).__name__})"


def _place(code: Any) -> str:
    try:
        return f"{inspect.getsourcefile(code)}, line {inspect.getsourcelines(code)[1]}: "
    except (OSError, TypeError):  # of a class that was typed in
        return ""


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"

"""What an environment or a reward returns, checked where it enters an episode.

What always holds: what passes is of the type that its interface names, and every number in it is finite; what does not
is one message with the class, the method, what came and what was expected.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from longstride.core.errors import OwnCodeError
from longstride.envs.base import Observation, Step
from longstride.rewards import Verdict

T = TypeVar("T")


async def ask(kind: type[T], method: Callable[..., Any], *args: Any) -> T:
    """What a method of an environment, a coroutine, returns.

    Raises:
        OwnCodeError: it is no coroutine, or returns something else.
    """
    answer = method(*args)
    if not isinstance(answer, Awaitable):
        raise OwnCodeError(f"{_name(method)} is no coroutine: write `async def {method.__name__}`")
    return _checked(kind, await answer, _name(method))


async def ask_reward(reward: Callable[..., Any], *args: Any) -> Verdict:
    """What a reward says, at once or after waiting.

    Raises:
        OwnCodeError: it is no verdict, or its reward is no finite number.
    """
    answer = reward(*args)
    return checked_verdict(await answer if isinstance(answer, Awaitable) else answer, reward)


def checked_verdict(answer: Any, reward: object) -> Verdict:
    """A verdict as it came from a reward.

    Raises:
        OwnCodeError: as `ask_reward`.
    """
    return _checked(Verdict, answer, type(reward).__name__)


def _checked(kind: type[T], answer: Any, place: str) -> T:
    if not isinstance(answer, kind):
        raise OwnCodeError(f"{place} returned {_brief(answer)}; expected {_article(kind.__name__)}")
    if isinstance(answer, Step) and not isinstance(answer.observation, Observation):
        raise OwnCodeError(f"{place}: the step's observation is {_brief(answer.observation)}; expected an Observation")
    if isinstance(answer, Observation) and not isinstance(answer.content, str | tuple):
        raise OwnCodeError(
            f"{place}: the observation is of {_brief(answer.content)}; expected a str, or a tuple of texts and Media"
        )
    if isinstance(answer, Step | Verdict) and not (_is_number(answer.reward) and math.isfinite(answer.reward)):
        raise OwnCodeError(f"{place}: the reward is {_brief(answer.reward)}; expected a finite number")
    return answer


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str)


def _name(method: Callable[..., Any]) -> str:
    return f"{type(getattr(method, '__self__', method)).__name__}.{method.__name__}"


def _brief(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"

"""Generators that ask: what they yield is answered by whoever drives them, and what they return is what came of it."""

from collections.abc import Callable, Generator
from typing import Any, TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
Result = TypeVar("Result")


def driven(asking: Generator[Asked, Answer, Result], answer: Callable[[Asked], Answer]) -> Result:
    """Answers all that a generator asks, and returns what it returns."""
    reply: Any = None  # starts it
    while True:
        try:
            asked = asking.send(reply)
        except StopIteration as end:
            return end.value
        reply = answer(asked)

"""Classes of a user's own whose methods could not be called as the package calls them are refused as they are made."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from longstride.core.component import Component
from longstride.core.errors import OwnCodeError
from longstride.core.overriding import check_overriding


class Above:
    def played(self, a: int, b: str = "b", *, c: int = 0) -> list[int]:
        return [a, c]

    async def asked(self, a: int) -> int:
        return a

    def drawn(self) -> Iterator[int]:
        return iter(())

    @property
    def name(self) -> str:
        return ""


def check(**members: Any) -> None:
    check_overriding(type("Mine", (Above,), members), lambda base: base is Above)


def test_what_takes_the_same_calls_is_accepted() -> None:
    def wider(self: Any, a: Any, b: Any = None, d: Any = None, *, c: Any = 1) -> list[int]:
        return []

    def anything(*args: Any, **kwargs: Any) -> list[int]:
        return []

    async def asked(self: Any, a: int) -> int:
        return 0

    def drawn(self: Any) -> Iterator[int]:
        yield 1

    check(played=wider, asked=asked, drawn=drawn, name=property(lambda self: "x"), other=lambda: 1)
    check(played=anything)
    check(name="a value", played=staticmethod(anything))


def fewer(self: Any, a: int) -> list[int]:
    return []


def more(self: Any, a: int, b: str, c: int, d: int) -> list[int]:
    return []


def renames_b(self: Any, a: int, text: str = "b", *, c: int = 0) -> list[int]:
    return []


def needs_b(self: Any, a: int, b: str, *, c: int = 0) -> list[int]:
    return []


async def waits(self: Any, a: int, b: str = "b", *, c: int = 0) -> list[int]:
    return []


def yields(self: Any, a: int, b: str = "b", *, c: int = 0) -> Iterator[int]:
    yield a


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"played": fewer}, r"Mine.played takes \(self, a\); expected \(self, a, b='b', \*, c=0\)"),
        ({"played": more}, r"takes \(self, a, b, c, d\); expected"),
        ({"played": renames_b}, r"takes \(self, a, text='b', \*, c=0\); expected \(self, a, b='b', \*, c=0\)"),
        ({"played": needs_b}, r"takes \(self, a, b, \*, c=0\); expected \(self, a, b='b', \*, c=0\)"),
        ({"played": waits}, r"played is a coroutine, and is not awaited; write `def played`"),
        ({"played": yields}, r"played yields; expected it to return all at once"),
        ({"asked": fewer}, r"asked is no coroutine; write `async def asked`"),
        ({"name": lambda self: "x"}, r"name is a method; write @property above it"),
        ({"played": property(lambda self: [])}, r"played is a property; expected a method"),
    ],
)
def test_what_does_not_fit_is_said_as_the_class_is_made(members: dict[str, Any], says: str) -> None:
    with pytest.raises(OwnCodeError, match=says):
        check(**members)


def test_a_component_of_the_users_own_is_held_to_its_family() -> None:
    import longstride as ls

    with pytest.raises(OwnCodeError, match=r"Mine.__call__ takes \(self, trajectory\); expected"):

        class Mine(ls.Reward):
            def __call__(self, trajectory: ls.Trajectory) -> ls.Verdict:  # pyright: ignore[reportIncompatibleMethodOverride]
                return ls.Verdict(1.0, True)

    class Own(Component):
        def __call__(self, anything: Sequence[int]) -> int:  # of no family of the package: as its author likes
            return len(anything)

    assert Own()([1]) == 1

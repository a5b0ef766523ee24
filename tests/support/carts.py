"""A family of components, a component that has some of them, and examples of both."""

from abc import abstractmethod
from typing import Annotated

from hypothesis import strategies as st
from pydantic import Field

from longstride.core.component import Component


class Wheel(Component):
    """Family."""

    @abstractmethod
    def turns(self) -> int:
        """Something that a member does."""


class SmallWheel(Wheel):
    spokes: Annotated[int, Field(ge=3)] = 8

    def turns(self) -> int:
        return self.spokes


class HTTPWheel(Wheel):
    address: str
    tries: int | None = None

    def turns(self) -> int:
        return 0


class WideWheel(Wheel):
    spokes: int = 3
    width: int = 1

    def turns(self) -> int:
        return self.width


class Cart(Component):
    name: str = "cart"
    load: float = 1.0
    front: Wheel = SmallWheel()
    others: tuple[Wheel, ...] = ()
    by_side: dict[str, int] = {}


def texts(max_size: int) -> st.SearchStrategy[str]:
    """Texts that a file can hold."""
    return st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=max_size)


wheels = st.one_of(
    st.builds(SmallWheel, spokes=st.integers(3, 40)),
    st.builds(HTTPWheel, address=texts(max_size=5), tries=st.none() | st.integers(0, 9)),
)


carts = st.builds(
    Cart,
    name=texts(max_size=8),
    load=st.floats(allow_nan=False, allow_infinity=False),
    front=wheels,
    others=st.lists(wheels, max_size=3).map(tuple),
    by_side=st.dictionaries(st.text(max_size=4), st.integers(-9, 9), max_size=3),
)

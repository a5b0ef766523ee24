"""Components: plain data in, plain data out, and one clear message for everything that does not fit."""

from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from longstride.core.component import Component, build
from longstride.core.errors import ConfigError


class Wheel(Component):
    """Family."""


class SmallWheel(Wheel):
    spokes: Annotated[int, Field(ge=3)] = 8


class HTTPWheel(Wheel):
    address: str
    tries: int | None = None


class WideWheel(Wheel):
    spokes: int = 3
    width: int = 1


class Cart(Component):
    name: str = "cart"
    load: float = 1.0
    front: Wheel = SmallWheel()
    others: tuple[Wheel, ...] = ()
    by_side: dict[str, int] = {}


wheels = st.one_of(
    st.builds(SmallWheel, spokes=st.integers(3, 40)),
    st.builds(HTTPWheel, address=st.text(max_size=5), tries=st.none() | st.integers(0, 9)),
)
carts = st.builds(
    Cart,
    name=st.text(max_size=8),
    load=st.floats(allow_nan=False, allow_infinity=False),
    front=wheels,
    others=st.lists(wheels, max_size=3).map(tuple),
    by_side=st.dictionaries(st.text(max_size=4), st.integers(-9, 9), max_size=3),
)


@given(carts)
def test_data_of_a_component_builds_an_equal_one(cart: Cart) -> None:
    assert build(Cart, cart.as_data()) == cart


def test_a_member_of_a_family_is_named_in_snake_case() -> None:
    assert set(Wheel.members()) == {"small_wheel", "http_wheel", "wide_wheel"}
    assert SmallWheel().as_data() == {"type": "small_wheel", "spokes": 8}


def test_a_component_of_no_family_needs_no_type_and_none_is_left_out() -> None:
    assert "type" not in Cart().as_data()
    assert HTTPWheel(address="x").as_data() == {"type": "http_wheel", "address": "x"}


def test_a_component_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Cart().name = "other"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        ({"nmae": "x"}, ["nmae", "did you mean 'name'", "Known: by_side, front"]),
        ({"front": {"type": "smal_wheel"}}, ["front", "did you mean 'small_wheel'"]),
        ({"front": {"spokes": 4}}, ["front", "`type` is missing", "http_wheel, small_wheel, wide_wheel"]),
        ({"front": {"type": "small_wheel", "spoke": 4}}, ["front.spoke", "did you mean 'spokes'"]),
        ({"front": {"type": "small_wheel", "spokes": 2}}, ["front.spokes", "greater than or equal to 3", "got 2"]),
        ({"others": [{"type": "small_wheel"}, {"type": "http_wheel"}]}, ["others[1].address", "required"]),
        ({"load": "heavy"}, ["load", "valid number", "'heavy'"]),
        ({"front": 3}, ["front", "got 3"]),
        ({"front": {"type": ["small_wheel"]}}, ["front", "unknown type"]),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(data: dict, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        build(Cart, data)
    for part in parts:
        assert part in str(caught.value)


def test_all_values_that_do_not_fit_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        build(Cart, {"load": "heavy", "name": 3})
    assert len(str(caught.value).splitlines()) == 2

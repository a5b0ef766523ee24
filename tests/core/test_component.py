"""Components: plain data in, plain data out, and one clear message for everything that does not fit."""

import pytest
from carts import Cart, HTTPWheel, SmallWheel, Wheel, WideWheel, carts
from hypothesis import given
from pydantic import ValidationError

from longstride.adapters.dataset import Dataset
from longstride.core.component import Component, apart, build, member_of, parts_of
from longstride.core.errors import ConfigError
from longstride.curriculum import Fixed, Schedule
from longstride.envs.base import TaskSource
from longstride.envs.puzzles import Wordle


@given(carts)
def test_data_of_a_component_builds_an_equal_one(cart: Cart) -> None:
    assert build(Cart, cart.as_data()) == cart


def test_a_member_of_a_family_is_named_in_snake_case() -> None:
    assert set(Wheel.members()) == {"small_wheel", "http_wheel", "wide_wheel"}
    assert SmallWheel.type_name() == "small_wheel"


def test_a_member_outside_of_the_package_says_its_module_too() -> None:
    assert SmallWheel().as_data() == {"type": "carts:SmallWheel", "spokes": 8}
    assert Fixed(limit=3).as_data() == {"type": "fixed", "limit": 3}
    data = SmallWheel(spokes=5).as_data()
    assert build(Wheel, data) == build(Wheel, data | {"type": "small_wheel"}) == SmallWheel(spokes=5)


def own(name: str, base: type[Component], module: str) -> type[Component]:
    """A class of a user's own, called as another one is."""
    return type(name, (base,), {"__module__": module})


def test_a_class_of_ones_own_never_stands_for_one_of_the_package_that_is_called_the_same() -> None:
    mine, absent = own("Fixed", Fixed, "mine"), own("Openenv", Wordle, "mine")
    assert build(Schedule, Fixed(limit=3).as_data()) == Fixed(limit=3)
    assert Schedule.members()["mine:Fixed"] is mine
    assert member_of(TaskSource, "openenv") is not absent  # which no module that is imported has


class Lamp(Component):
    """A family whose root is a member too."""


def test_of_two_classes_of_ones_own_that_are_called_the_same_the_module_must_be_named() -> None:
    first, second = (own("Torch", Lamp, module) for module in ("first", "second"))
    with pytest.raises(ConfigError, match="'torch'; did you mean 'first:Torch' or 'second:Torch'"):
        build(Lamp, {"type": "torch"})
    again = own("Torch", Lamp, "first")  # as in a notebook, where a cell is run once more
    assert Lamp.members() == {"lamp": Lamp, "first:Torch": again, "second:Torch": second} and again is not first


def test_a_component_of_no_family_needs_no_type_and_none_is_left_out() -> None:
    assert "type" not in Cart().as_data()
    assert HTTPWheel(address="x").as_data() == {"type": "carts:HTTPWheel", "address": "x"}


def test_a_member_of_the_family_that_would_not_do_is_not_suggested() -> None:
    with pytest.raises(ConfigError) as raised:
        build(Dataset, {"type": "openenv", "address": "http://127.0.0.1:1"})
    assert "unknown type 'openenv'; Known: dataset" in str(raised.value)


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
        (
            {"others": [{"type": "small_wheel"}, {"type": "http_wheel"}]},
            ["others[1].address", "missing, and has no default"],
        ),
        ({"others": "front"}, ["others", "expected a list, such as ['front'] (got 'front')"]),
        ({"load": "heavy"}, ["load", "valid number", "'heavy'"]),
        ({"front": 3}, ["front", "got 3"]),
        ({"front": {"type": ["small_wheel"]}}, ["front", "unknown type"]),
        ({"front": {"type": "nowhere:Wheel"}}, ["front", "nowhere:Wheel", "cannot be imported", "module:Class"]),
        ({"front": {"type": "json:Wheel"}}, ["front", "cannot be imported"]),
        ({"front": {"type": "os:system"}}, ["front", "os:system is no wheel", "subclass of Wheel"]),
        ({"front": {"type": "carts:Cart"}}, ["front", "is no wheel"]),
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


def test_a_copy_has_the_named_fields_otherwise_also_of_the_components_inside() -> None:
    cart = Cart(front=SmallWheel(spokes=4), others=(SmallWheel(),))
    changed = cart.replace(load=2.0, front={"spokes": 5})
    assert changed == Cart(load=2.0, front=SmallWheel(spokes=5), others=(SmallWheel(),))
    assert cart.front == SmallWheel(spokes=4)


class Rack(Component):
    wheels: dict[str, Wheel] = {"left": SmallWheel(spokes=4), "right": SmallWheel(spokes=5)}


def test_a_copy_changes_what_it_names_of_components_by_name_and_keeps_the_others() -> None:
    changed = Rack().replace(wheels={"left": {"spokes": 6}})
    assert changed.wheels == {"left": SmallWheel(spokes=6), "right": SmallWheel(spokes=5)}
    assert Rack().replace(wheels={"left": {"type": "small_wheel"}}).wheels == {"left": SmallWheel()}
    with pytest.raises(ConfigError, match=r"rack.wheels.left.spoke: .*did you mean 'spokes'"):
        Rack().replace(wheels={"left": {"spoke": 6}})


def test_of_several_components_one_is_changed_by_its_place() -> None:
    cart = Cart(others=(SmallWheel(spokes=4), WideWheel(spokes=5)))
    assert cart.replace(others={"1": {"spokes": 6}}).others == (SmallWheel(spokes=4), WideWheel(spokes=6))
    with pytest.raises(ConfigError, match="others.1: unknown|others.1.*spoke"):
        cart.replace(others={"1": {"spoke": 6}})
    with pytest.raises(ConfigError, match="others"):
        cart.replace(others={"2": {"spokes": 6}})


def test_a_copy_may_name_another_member_which_keeps_the_fields_that_both_have() -> None:
    cart = Cart(front=SmallWheel(spokes=7))
    assert cart.replace(front={"type": "wide_wheel", "width": 2}).front == WideWheel(spokes=7, width=2)
    assert cart.replace(front=HTTPWheel(address="x")).front == HTTPWheel(address="x")
    assert cart.replace(others=[{"type": "small_wheel", "spokes": 4}]).others == (SmallWheel(spokes=4),)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"laod": 2.0}, "did you mean 'load'"),
        ({"front": {"spoke": 5}}, "cart.front.spoke: .*did you mean 'spokes'"),
        ({"front": {"spokes": 2}}, "cart.front.spokes: .*greater than or equal to 3"),
        ({"load": "heavy"}, "cart.load: .*valid number"),
        ({"front": {"type": "smal_wheel"}}, "did you mean 'small_wheel'"),
    ],
)
def test_a_copy_that_cannot_be_is_refused_with_its_place(changes: dict, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        Cart().replace(**changes)


class Named(Component):
    """A family whose root is a member too."""

    size: int = 1


class Longer(Named):
    more: int = 2


class Shelf(Component):
    named: dict[str, Named] = {}
    first: Named = Named()


def test_a_family_that_can_be_built_itself_is_what_data_without_a_type_means() -> None:
    assert build(Shelf, {"first": {"size": 3}}).first == Named(size=3)
    assert build(Shelf, {"first": {"type": f"{__name__}:Longer", "size": 3}}).first == Longer(size=3)


def test_a_table_of_components_has_one_for_each_key() -> None:
    shelf = Shelf(named={"a": Named(size=2), "b": Longer(more=5)})
    assert build(Shelf, shelf.as_data()) == shelf
    with pytest.raises(ConfigError, match=r"named\.a\.siez: .*did you mean 'size'"):
        build(Shelf, {"named": {"a": {"siez": 1}}})


class Train(Component):
    carts: dict[str, Cart] = {}
    spare: Wheel | None = None


def test_every_part_has_a_place_and_apart_an_object_of_its_own_there() -> None:
    wheel = SmallWheel(spokes=5)
    cart = Cart(front=wheel, others=(wheel, wheel))
    train = Train(carts={"a": cart, "b": cart}, spare=wheel)
    copy = apart(train)
    places = ["carts.a", "carts.a.front", "carts.a.others[0]", "carts.a.others[1]"]
    places += [place.replace(".a", ".b") for place in places] + ["spare"]
    assert [place for place, _ in parts_of(copy)] == places == [place for place, _ in parts_of(train)]
    assert len({id(part) for _, part in parts_of(train)}) == 2
    assert len({id(part) for _, part in parts_of(copy)}) == len(places) and copy == train


class Driven(Cart):
    seats: int = 2
    """Where people
    sit."""
    doors: int = 0
    horn: str = "loud"
    "One."


class Towed(Driven):
    seats: int = 0
    """None of them may."""


def test_the_meanings_of_fields_are_their_docstrings_own_and_inherited() -> None:
    assert Driven.meanings() == {"seats": "Where people\nsit.", "horn": "One."}
    assert Towed.meanings() == {"seats": "None of them may.", "horn": "One."}
    typed_in = type("TypedIn", (Towed,), {"__module__": "nowhere"})  # without a source
    assert typed_in.meanings() == Towed.meanings()

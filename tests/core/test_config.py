"""TOML files and dotted overrides."""

from pathlib import Path

import pytest
from carts import Cart, HTTPWheel, SmallWheel, WideWheel, carts
from hypothesis import given
from hypothesis import strategies as st

from longstride import papers
from longstride.core.component import Component
from longstride.core.config import UNSET, dump_toml, load_toml, parse_override, read_toml, resolve
from longstride.core.errors import ConfigError
from longstride.run.recipe import Recipe


class Train(Component):
    cars: tuple[Cart, ...] = ()
    first: Cart = Cart()
    limit: int | None = None
    names: tuple[str, ...] = ("a",)


@given(carts)
def test_a_dumped_component_is_read_back_equal(tmp_path_factory: pytest.TempPathFactory, cart: Cart) -> None:
    path = tmp_path_factory.getbasetemp() / "cart.toml"
    train = Train(cars=(cart, cart), first=cart)
    path.write_text(dump_toml(train), encoding="utf-8", newline="")
    assert load_toml(Train, path) == train


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b"a = 1\nb = = 2\n", ["line 2"]),
        (b"a = 1\na = 2\n", ["line 2"]),
        (b"\xff\xfe", ["UTF-8"]),
        (b"a = " + b"9" * 5000, ["not TOML"]),
        (b"a = " + b"[" * 100_000, ["recursion depth"]),
    ],
)
def test_a_broken_file_is_named_and_the_line_where_there_is_one(
    tmp_path: Path, content: bytes, parts: list[str]
) -> None:
    path = tmp_path / "broken.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_toml(path)
    for part in [str(path), *parts]:
        assert part in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: No such file"):
        read_toml(tmp_path / "none.toml")


def test_a_wrong_key_in_a_file_is_named_with_the_file_and_the_nearest_key(tmp_path: Path) -> None:
    path = tmp_path / "cart.toml"
    path.write_text("[front]\ntype = 'small_wheel'\nspoke = 3\n")
    with pytest.raises(ConfigError, match=r"cart\.toml: front\.spoke: .*did you mean 'spokes'"):
        load_toml(Cart, path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("learner.lr=3e-4", ("learner.lr", 3e-4)),
        ("a=fixed", ("a", "fixed")),
        ("a='8'", ("a", "8")),
        ("a=true", ("a", True)),
        ("a=[1, 2]", ("a", [1, 2])),
        ("a={type = 'fixed', limit = 8}", ("a", {"type": "fixed", "limit": 8})),
        ("a=x=y", ("a", "x=y")),
        ("a = 3", ("a", 3)),
        ("a=", ("a", UNSET)),
        ("a=2026-01-01", ("a", "2026-01-01")),
        ("a=1\nb=2", ("a", "1\nb=2")),
    ],
)
def test_a_value_is_toml_where_it_can_be_and_text_otherwise(text: str, expected: tuple) -> None:
    assert parse_override(text) == expected


@pytest.mark.parametrize("text", ["", "tti", "--lr", "=3", "a..b=1", ".a=1", "a.=1"])
def test_an_override_without_key_and_value_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="expected key=value, such as"):
        parse_override(text)


@given(st.text())
def test_any_text_is_an_override_or_refused(text: str) -> None:
    try:
        key, _ = parse_override(text)
        assert text.startswith(key) or text[0].isspace()
    except ConfigError:
        assert "=" not in text or not all(text.partition("=")[0].strip().split("."))


def test_overrides_reach_into_components_and_leave_the_base_alone() -> None:
    base = Train()
    changed = resolve(Train, base, ["first.front.spokes=5", "limit=3"])
    assert changed == Train(first=Cart(front=SmallWheel(spokes=5)), limit=3)
    assert base == Train()


def test_an_override_without_a_value_gives_the_default() -> None:
    train = Train(limit=3)
    assert resolve(Train, train, ["limit="]) == Train() == resolve(Train, Train(), ["limit="])
    assert parse_override('name=""') == ("name", "")  # an empty text is a value
    with pytest.raises(ConfigError, match="limits"):
        resolve(Train, train, ["limits=1"])


def test_of_two_overrides_of_one_key_the_last_counts() -> None:
    assert resolve(Train, Train(), ["limit=3", "limit=4"]).limit == 4


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_new_type_drops_the_fields_that_it_does_not_have_in_any_order(order: tuple[int, int]) -> None:
    overrides = ["front.type=http_wheel", "front.address=here"]
    cart = resolve(Cart, Cart(front=SmallWheel(spokes=5)), [overrides[i] for i in order])
    assert cart.front == HTTPWheel(address="here")


def test_naming_the_type_that_is_there_keeps_its_fields() -> None:
    assert resolve(Cart, Cart(front=SmallWheel(spokes=5)), ["front.type=small_wheel"]).front == SmallWheel(spokes=5)


def test_a_new_type_keeps_the_fields_that_both_types_have() -> None:
    cart = resolve(Cart, Cart(front=SmallWheel(spokes=5)), ["front.type=wide_wheel", "front.width=2"])
    assert cart.front == WideWheel(spokes=5, width=2)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_table_replaces_all_and_a_field_in_it_comes_after_it(order: tuple[int, int]) -> None:
    overrides = ["front={type='http_wheel', address='there'}", "front.tries=4"]
    cart = resolve(Cart, Cart(), [overrides[i] for i in order])
    assert cart.front == HTTPWheel(address="there", tries=4)


def test_a_list_is_replaced_whole() -> None:
    cart = resolve(Cart, Cart(others=(SmallWheel(),)), ["others=[{type='small_wheel', spokes=4}]"])
    assert cart.others == (SmallWheel(spokes=4),)


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("frist.load=2", "did you mean 'first'"),
        ("first.front.type=smal_wheel", "did you mean 'small_wheel'"),
        ("first.front.spokse=4", "did you mean 'spokes'"),
        ("first.load.x=4", "first.load is 1.0 and has no fields"),
        ("cars.0.load=4", "cars is a list of 0: there is no number 0"),
        ("names.0.x=4", "names.0 is 'a' and has no fields"),
        ("names.0.x.y=4", "names.0 is 'a' and has no fields"),
        ("first.front.type=http_wheel", "first.front.address"),
        ("first.load=heavy", "first.load"),
    ],
)
def test_an_override_that_does_not_fit_is_refused_with_its_place(override: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(Train, Train(), [override])
    assert part in str(caught.value)


@pytest.mark.parametrize("text", ["iterations=99999999999999999999999", "group_size=-3", "evaluation.tasks=1e30"])
def test_an_absurd_count_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(ConfigError, match=text.partition("=")[0]):
        resolve(Recipe, papers.load("grpo"), [text])


def test_one_of_a_list_is_set_by_its_number_whatever_is_inside() -> None:
    train = Train(cars=(Cart(), Cart(others=(SmallWheel(), SmallWheel()))))
    found = resolve(Train, train, ["cars.1.others.0.spokes=9", "cars.0.name=first", "cars.1.others.1.type=http_wheel",
                                   "cars.1.others.1.address=x"])  # fmt: skip
    assert found.cars[0].name == "first" and found.cars[1].others == (SmallWheel(spokes=9), HTTPWheel(address="x"))
    assert resolve(Train, train, ['cars.0={name = "new"}']).cars[0] == Cart(name="new")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("cars.2.name=x", "cars.2.name: cars is a list of 2: there is no number 2, counted from 0"),
        ("cars.-1.name=x", "cars is a list of 2; name one by its number"),
        ("cars.name=x", "cars is a list of 2; name one by its number, such as cars.0.name"),
        ("cars.1=", "cars.1: one of a list has no default"),
        ("cars.0.front.type=huge", "cars.0.front.type: unknown type 'huge'"),
        ("cars.0.front={type='huge'}", "cars[0].front.type: unknown type 'huge'"),
        ("cars.0.front.type=m:make.<locals>.W", "a class made inside a function.*define it at the top of a module"),
        ("cars.0.front.spoke=3", "cars[0].front.spoke: unknown key 'spoke'; did you mean 'spokes'"),
    ],
)
def test_what_of_a_list_cannot_be_set_is_said(override: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said.replace("[0]", r"\[0\]").replace("cars.0.", r"cars\.0\.")):
        resolve(Train, Train(cars=(Cart(), Cart())), [override])

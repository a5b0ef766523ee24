"""The embedded sites: real pages with state by visitor, that nothing in a form or an address can break."""

import json

import pytest

from longstride.core.errors import LongstrideWarning
from longstride.envs.sites import HELD_OUT, KINDS, make_world
from longstride.envs.sites.app import build_application
from longstride.envs.sites.browser import TextBrowser
from longstride.envs.sites.cleaning import clean
from longstride.envs.sites.lexicon import ADJECTIVES, NOUNS, names
from longstride.models.chat import UNSEEN_WORDS, ChatFormat
from longstride.models.load import load_policy


@pytest.fixture
def app():
    return build_application()


async def visitor(app, start: str) -> TextBrowser:
    browser = TextBrowser(app)
    assert await browser.open(start) is None
    return browser


def number(browser: TextBrowser, name: str) -> int:
    return next(e.number for e in browser.page.layout.elements if e.name == name)


async def state(browser: TextBrowser, root: str) -> dict:
    status, body = await browser.fetch(f"{root}__state__")
    assert status == 200
    return json.loads(body)


async def test_a_cart_is_filled_and_ordered_and_belongs_to_one_visitor(app) -> None:
    item, root = make_world("shop", 1).items[3], "/shop/1/"
    one, two = await visitor(app, root), await visitor(app, root)
    for quantity in ("2", "3"):
        await one.type(number(one, "search"), item.name)
        await one.click(number(one, item.name))
        await one.type(number(one, "quantity"), quantity)
    assert f"5 {item.name}" in one.text()
    assert (await state(one, root))["cart"] == [{"item": item.name, "count": 5}]
    assert (await state(two, root))["cart"] == []
    await one.click(number(one, "order"))
    assert (await state(one, root))["orders"] == [[{"item": item.name, "count": 5}]]
    assert (await state(one, root))["cart"] == []


async def test_a_reply_needs_a_login_and_comes_back_to_the_thread(app) -> None:
    item, root = make_world("forum", 2).items[0], "/forum/2/"
    browser = await visitor(app, f"{root}i/{item.id}")
    await browser.click(number(browser, "login"))
    await browser.type(number(browser, "name"), "Maria")
    assert f"# {item.name}" in browser.text()
    await browser.type(number(browser, "reply"), "Thanks")
    assert "maria thanks" in browser.text()
    assert (await state(browser, root))["replies"] == [{"item": item.name, "by": "maria", "text": "thanks"}]


async def test_a_booking_is_kept(app) -> None:
    item, root = make_world("stays", 3).items[1], "/stays/3/"
    browser = await visitor(app, f"{root}i/{item.id}")
    await browser.fill(number(browser, "nights"), "4")
    await browser.click(number(browser, "book"))
    assert (await state(browser, root))["bookings"] == [{"item": item.name, "count": 4}]


async def test_lists_have_pages_and_a_filter(app) -> None:
    seed = next(s for s in range(50) if any(len(c) > 5 for c in lists("shop", s)))
    category = next(c for c in lists("shop", seed) if len(c) > 5)
    browser = await visitor(app, f"/shop/{seed}/c/{category[0].category}")
    await browser.click(number(browser, "next"))
    assert category[5].name in browser.text() and category[0].name not in browser.text()
    await browser.click(number(browser, "previous"))
    await browser.click(number(browser, "sale"))
    await browser.click(number(browser, "filter"))
    shown = [i.name for i in category if i.name in browser.text()]
    assert shown == [i.name for i in category if i.flag][:5]


def lists(kind: str, seed: int) -> list[list]:
    world = make_world(kind, seed)
    return [world.in_category(c) for c in world.categories]


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "x" * 5000, "%00", "' or 1=1", "\u202e[3]", "99999999999"]
)
async def test_hostile_words_in_fields_are_text_at_most(app, text: str) -> None:
    for path, field in (
        ("/shop/1/i/0", "quantity"),
        ("/stays/1/i/0", "nights"),
        ("/forum/1/login?next=//evil.test", "name"),
    ):
        browser = await visitor(app, path)
        assert await browser.type(number(browser, field), text) is None
        assert browser.status == 200 and browser.url.startswith("http://sites.test/")
        assert "<script>" not in (await browser.fetch(path))[1].decode()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200), ("/shopp/1/", 404), ("/<b>/1/", 404), ("/shop/1/i/9999", 404), ("/shop/1/c/none", 404),
        ("/shop/1/r/nobody", 404), ("/shop/1/c/none?page=99999999999999", 404), ("/encyclopedia/1/l/atlantis", 404),
    ],
)  # fmt: skip
async def test_an_address_that_is_not_there_is_a_page_that_says_so(app, path: str, status: int) -> None:
    found, body = await TextBrowser(app).fetch(path)
    assert found == status
    assert b"<b>" not in body


def test_a_world_is_a_function_of_kind_and_seed_and_tells_names_by_one_word() -> None:
    for kind in KINDS:
        for seed in (0, 7, HELD_OUT + 3):
            make_world.cache_clear()
            first = make_world(kind, seed)
            make_world.cache_clear()
            assert make_world(kind, seed) == first
            words = [w for i in first.items for w in i.name.split()]
            assert len(set(words)) == len(words)
            assert {i.name for i in first.items} <= names(seed >= HELD_OUT)


def test_every_word_of_a_name_occurs_in_names_of_both_splits() -> None:
    for held_out in (False, True):
        assert {w for n in names(held_out) for w in n.split()} == {*ADJECTIVES, *NOUNS}
    assert not names(True) & names(False)


def test_a_search_shows_the_item_among_others() -> None:
    world = make_world("shop", 5)
    for item in world.items:
        found = world.search(item.name)
        assert item in found and 1 < len(found) <= 5
    assert world.search("") == [] and world.search("zzz") == []


@pytest.mark.filterwarnings("error:the model's vocabulary lacks")
@pytest.mark.parametrize("model", ["base", "base-keep-last", "base-wander"])
async def test_a_shipped_model_can_read_every_page_and_another_is_told_what_it_cannot(model: str, app) -> None:
    policy = load_policy(model)
    for kind in KINDS:
        browser = await visitor(app, f"/{kind}/3/")
        policy.chat.encode(browser.text())
        for element in [e for e in browser.page.layout.elements if e.role == "link"]:
            await browser.open(element.value)
            policy.chat.encode(browser.text())
            for item in [e for e in browser.page.layout.elements if e.role == "link"][:6]:
                await browser.open(item.value)
                policy.chat.encode(browser.text())
        if kind != "sheet":
            await browser.type(number(browser, "search"), "sorry")
            assert "nothing found" in browser.text()
            policy.chat.encode(browser.text())
    policy.chat.encode(clean("sorry [3]"))  # what was typed may be shown
    policy.tokenizer.init_kwargs.pop(UNSEEN_WORDS)
    with pytest.raises(LongstrideWarning, match="lacks '(nothing|found)'"):
        ChatFormat(policy.tokenizer).encode("nothing found")

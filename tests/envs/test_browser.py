"""The text browser and its environment: what actions do, what is refused, what an episode sees."""

import asyncio
from collections.abc import Callable
from urllib.parse import parse_qsl

import pytest
from answering_site import answering, task
from jinja2 import DictLoader, Environment
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from longstride.core.errors import EnvFailure
from longstride.envs.sites.browser import OUTSIDE, TextBrowser
from longstride.envs.sites.env import WebEnv

TEMPLATES = {
    "base": """<!doctype html><html><head><title>x</title><style>p{}</style></head><body>
<header><a href="/shop/1/">home</a> <form action="/shop/1/search"><input name="q" aria-label="search" value="{{ q }}">
</form></header><main><h1>{{ title }}</h1>{% block main %}{% endblock %}</main></body></html>""",
    "list": """{% extends 'base' %}{% block main %}<ul>{% for i in items %}
<li><a href="/shop/1/i/{{ i }}">item {{ i }}</a></li>{% endfor %}</ul><a href="{{ next }}">next</a>{% endblock %}""",
    "item": """{% extends 'base' %}{% block main %}<table><tr><th>color</th><td>red</td></tr></table>
<form action="/shop/1/echo" method="post"><input type="hidden" name="id" value="7">
<input name="count" aria-label="count" value="1"> <label><input type="checkbox" name="gift"> gift</label>
<label for="c">color</label><select id="c" name="color"><option value="">any</option><option value="r">red</option>
<option value="b">blue</option></select> <label><input type="radio" name="size" value="s" checked> small</label>
<label><input type="radio" name="size" value="l"> large</label> <button name="do" value="add">add to cart</button>
<button name="do" value="buy">buy</button> <button type="reset">clear</button></form>{% endblock %}""",
}
template = Environment(loader=DictLoader(TEMPLATES), autoescape=True, auto_reload=False).get_template


def page(name: str, title: str, q: str = "", **values) -> Response:
    return HTMLResponse(template(name).render(title=title, q=q, **values))


def cookie(max_age: int) -> Response:
    answer = RedirectResponse("who", 303)
    answer.set_cookie("sid", "abc", max_age, path="/shop/1/")
    answer.set_cookie("elsewhere", "no", path="/other/")
    return answer


PAGES: dict[str, Callable[[Request], Response]] = {
    "": lambda r: page("list", "lamps", items=range(10), next="search?q=a&page=2"),
    "search": lambda r: page("list", "results", r.query_params["q"], items=[1], next="/shop/1/"),
    "i/{id}": lambda r: page("item", f"item {r.path_params['id']}"),
    "html": lambda r: HTMLResponse(r.query_params["h"]),
    "login": lambda r: cookie(3600),
    "logout": lambda r: cookie(0),
    "who": lambda r: HTMLResponse("cookies: " + " ".join(f"{k}={v}" for k, v in r.cookies.items())),
    "loop": lambda r: RedirectResponse("/shop/1/loop"),
    "leave": lambda r: RedirectResponse("http://evil.test/"),
    "keep/{status}": lambda r: RedirectResponse("/shop/1/echo", int(r.path_params["status"])),
    "broken": lambda r: HTMLResponse(f"{1 // 0}"),
    "__state__": lambda r: JSONResponse({"sid": r.cookies.get("sid")}),
    "image": lambda r: Response(b"\x89PNG", media_type="image/png"),
}


async def echo(request: Request) -> Response:
    sent = parse_qsl((await request.body()).decode(), keep_blank_values=True) or list(request.query_params.items())
    return PlainTextResponse(request.method + " " + " ".join(f"{k}:{v};" for k, v in sent))


def endpoint(make: Callable[[Request], Response]):
    async def answer(request: Request) -> Response:
        return make(request)

    return answer


def site() -> Starlette:
    pages = {path: endpoint(make) for path, make in PAGES.items()} | {"echo": echo}
    return Starlette(routes=[Route("/shop/1/" + path, f, methods=["GET", "POST"]) for path, f in pages.items()])


async def opened(path: str = "/shop/1/", window: int = 60) -> TextBrowser:
    b = TextBrowser(site(), window=window)
    assert await b.open(path) is None
    return b


async def showing(html: str) -> TextBrowser:
    """A browser on a page of one's own; every other page shows what was asked for."""

    def answer(scope: dict) -> tuple[int, str]:
        asked = f"{scope['method']} {scope['path']}?{scope['query_string'].decode()}"
        return 200, html if scope["path"] == "/" else asked

    b = TextBrowser(answering(answer))
    await b.open("/")
    return b


def number(b: TextBrowser, name: str) -> int:
    return next(e.number for e in b.page.layout.elements if e.name == name)


async def test_a_page_is_lines_of_blocks_with_numbered_elements():
    b = await opened("/shop/1/i/7")
    assert b.text().splitlines() == [
        "home [1] textbox search [2]",
        "# item 7",
        "color red",
        "textbox count [3] = 1 checkbox gift [4] select color [5] = any ( any | red | blue ) radio small [6] = on "
        "radio large [7] button add to cart [8] button buy [9] button clear [10]",
    ]


async def test_links_are_followed_absolute_and_relative():
    b = await opened()
    assert await b.click(number(b, "item 3")) is None
    assert "# item 3" in b.text() and b.url == "http://sites.test/shop/1/i/3"
    await b.home()
    assert await b.click(number(b, "next")) is None
    assert b.url == "http://sites.test/shop/1/search?q=a&page=2"


@pytest.mark.parametrize(
    "href",
    [
        "javascript:alert(1)", "mailto:a@b", "data:text/html,x", "http://evil.test/", "//evil.test/", "/\\evil.test/",
        "https://sites.test/", "http://sites.test@evil.test/", "http://sites.test:81/", "http://[", "file:///etc/passwd",
        " \tjava\nscript:1",
    ],
)  # fmt: skip
async def test_an_address_outside_of_the_origin_is_refused(href: str):
    b = await showing(f'<a href="{href}">x</a>')
    before = b.text()
    assert await b.click(1) == OUTSIDE
    assert b.text() == before and await b.back() is not None


@pytest.mark.parametrize(
    ("href", "asked"),
    [
        ("http://sites.test/a", "/a?"), ("/a b/\u00e9?q=\u00fc x", "/a b/\u00e9?q=%C3%BC%20x"), ("x?x=1", "/x?x=1"),
        ("a/../c#d", "/c?"), ("/%41", "/A?"), ("/./b//", "/b//?"),
    ],
)  # fmt: skip
async def test_addresses_are_resolved_and_quoted(href: str, asked: str):
    b = await showing(f'<a href="{href}">x</a>')
    assert await b.click(1) is None
    assert b.text() == f"GET {asked}"


async def test_an_anchor_of_the_same_page_sends_no_request():
    b = await opened("/shop/1/html?h=" + "%3Cp%3Ex" * 9 + "%3Ca href=%23top%3Etop%3C/a%3E", window=5)
    await b.scroll(down=True)
    assert await b.click(1) is None
    assert b.offset == 0 and await b.back() is not None


async def test_redirects_are_followed_up_to_a_limit_and_never_to_another_origin():
    b = await opened()
    assert await b.open("/shop/1/login") is None
    assert b.url == "http://sites.test/shop/1/who"
    assert await b.open("/shop/1/loop") == "the site redirects more than 10 times"
    assert await b.open("/shop/1/leave") == OUTSIDE
    assert b.url == "http://sites.test/shop/1/who"


@pytest.mark.parametrize(("status", "method"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
async def test_a_redirected_post_keeps_its_method_only_for_307_and_308(status: int, method: str):
    b = TextBrowser(site())
    await b._go(f"/shop/1/keep/{status}", "POST", b"a=1")
    assert b.text() == method + (" a:1;" if method == "POST" else "")


async def test_cookies_keep_to_their_path_and_are_deleted():
    b = await opened("/shop/1/login")
    assert b.text() == "cookies: sid=abc"
    assert await b.fetch("/shop/1/__state__") == (200, b'{"sid":"abc"}')
    await b.open("/shop/1/logout")
    assert b.text() == "cookies:"


async def test_fetch_leaves_page_and_history_alone():
    b = await opened()
    assert (await b.fetch("/shop/1/nothing"))[0] == 404 and "# lamps" in b.text()
    assert await b.back() == "there is no page before this one"


async def test_back_shows_the_page_as_it_was_left():
    b = await opened("/shop/1/i/7")
    await b.fill(3, "5")
    await b.click(1)
    assert await b.back() is None
    assert "textbox count [3] = 5" in b.text() and b.url.endswith("/i/7")


async def test_back_passes_over_the_answer_to_a_post():
    b = await opened("/shop/1/i/7")
    await b.click(number(b, "buy"))
    await b.open("/shop/1/")
    assert await b.back() is None
    assert b.url.endswith("/i/7")
    b = await showing("<form method=post><input name=a></form>")  # posts to its own address
    await b.type(1, "x")
    assert await b.back() is None and b.text() == "textbox a [1] = x"


async def test_scrolling_stops_at_both_ends():
    b = await opened(window=5)
    assert await b.scroll(down=False) == "this is the top of the page"
    assert await b.scroll(down=True) is None and await b.scroll(down=True) is None
    assert await b.scroll(down=True) == "this is the end of the page" and b.text().startswith("scroll up for more")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("missing", "status 404\nNot Found"), ("image", "a file of type image/png, 4 bytes"),
        ("echo?a=<b>[3]</b>", "GET a:<b>(3)</b>;"), ("__state__", '{"sid":null}'),
    ],
)  # fmt: skip
async def test_errors_and_what_is_not_html_are_shown_as_text(path: str, shown: str):
    assert (await opened(f"/shop/1/{path}")).text() == shown


async def test_an_application_without_an_answer_is_an_env_failure():
    with pytest.raises(EnvFailure, match="did not answer"):
        await TextBrowser(lambda scope, receive, send: asyncio.sleep(0)).open("/")


async def test_a_post_form_sends_fields_boxes_choices_hidden_ones_and_the_pressed_button():
    b = await opened("/shop/1/i/7")
    await b.fill(3, "2 & 3")
    await b.click(4)
    await b.select(5, "RED")
    await b.click(7)
    assert "textbox count [3] = 2 & 3 checkbox gift [4] = on select color [5] = red" in b.text()
    assert "radio small [6] radio large [7] = on" in b.text()
    await b.click(number(b, "buy"))
    assert b.text() == "POST id:7; count:2 & 3; gift:on; color:r; size:l; do:buy;"


async def test_an_untouched_form_sends_its_defaults_and_an_unchecked_box_nothing():
    b = await opened("/shop/1/i/7")
    await b.click(4)
    await b.click(4)
    await b.type(3, "1")
    assert b.text() == "POST id:7; count:1; color:; size:s; do:add;"


async def test_a_reset_button_restores_the_form():
    b = await opened("/shop/1/i/7")
    before = b.text()
    await b.fill(3, "9")
    await b.click(4)
    assert b.text() != before
    await b.click(number(b, "clear"))
    assert b.text() == before


async def test_typing_submits_a_get_form_with_the_words_in_the_query():
    b = await opened()
    assert await b.type(2, "amber lantern") is None
    assert b.url == "http://sites.test/shop/1/search?q=amber+lantern"
    assert b.text().startswith("home [1] textbox search [2] = amber lantern\n# results")


@pytest.mark.parametrize(
    ("html", "result"),
    [
        ("<form action=/f><input name=a></form>", None),
        ("<form action=/f><input name=a><input name=b></form>", "Enter does not submit"),
        ("<form action=/f><input name=a><input name=b><button>go</button></form>", None),
        ("<form action=/f><input name=a><button disabled>go</button></form>", "button is disabled"),
        ("<input name=a>", "Enter does nothing"),
        ("<form><textarea name=a></textarea><button>go</button></form>", ""),
    ],
)
async def test_enter_submits_as_html_says(html: str, result: str | None):
    b = await showing(html)
    error = await b.type(1, "x")
    assert b.text().startswith("GET /f?a=x" if result is None else "textbox a [1] = x")
    assert (result or "") in (error or "") and (error is None) == (not result)


async def test_disabled_fields_and_those_of_other_forms_are_not_sent():
    b = await showing(
        "<form action=/f><input name=a value=1 disabled><input name=b value=2 readonly>"
        "<div hidden><input type=hidden name=c value=3></div><button>go</button></form><form><input name=d></form>"
    )
    assert await b.fill(1, "x") == "textbox [1] is disabled"
    assert await b.fill(2, "x") == "textbox [2] is read only"
    await b.click(3)
    assert b.text().startswith("GET /f?b=2&c=3")


async def test_a_form_without_action_goes_to_its_own_page_and_replaces_the_query():
    b = await opened("/shop/1/html?h=%3Cform%3E%3Cinput name=h%3E")
    await b.type(1, "<p>new")
    assert b.text() == "new" and b.url.endswith("/shop/1/html?h=%3Cp%3Enew")


@pytest.mark.parametrize(
    ("action", "error"),
    [
        (("click", 11), "there is no element [11]; this page has 1 to 10"),
        (("click", 0), "there is no element [0]; this page has 1 to 10"),
        (("click", 3), "textbox [3] takes words: type [3] words"),
        (("click", 5), "select [5] is set with: select [5] option"),
        (("fill", 1, "x"), "[1] is a link, not a textbox"),
        (("type", 5, "x"), "[5] is a select, not a textbox"),
        (("select", 1, "x"), "[1] is a link, not a select"),
        (("select", 5, "purple"), "select [5] has no option 'purple'; it has any | red | blue"),
    ],
)
async def test_an_action_without_effect_says_why(action: tuple, error: str):
    b = await opened("/shop/1/i/7")
    before = b.text()
    assert await getattr(b, action[0])(*action[1:]) == error
    assert b.text() == before


async def test_an_episode_goes_from_reset_to_an_answer():
    env = WebEnv(site())
    first = await env.reset(task(), 0)
    assert first.url == "http://sites.test/shop/1/" and "find the color" not in first.text
    step = await env.step("Thought: look. Action: click item 3 [6]")
    assert step.action == "click [6]" and step.error is None and "color red" in step.observation.text
    step = await env.step("Action: answer n/a")
    assert (step.terminated, step.answer, step.action) == (True, "n/a", "answer n/a")
    await env.close()


@pytest.mark.parametrize("said", ["", "Action: dance", "Action: click [99999999999]", "Action: back", "scroll up"])
async def test_a_step_without_effect_ends_its_observation_with_the_error(said: str):
    env = WebEnv(site())
    first = await env.reset(task(), 0)
    step = await env.step(said)
    assert step.observation.text == f"{first.text}\nerror: {step.error}" and step.error and not step.terminated


async def test_every_action_of_the_grammar_reaches_the_browser():
    env = WebEnv(site(), window=3)
    await env.reset(task("/shop/1/i/7"), 0)
    said = "fill [3] 2,select [5] blue,click gift [4],scroll down,scroll up,wait,click [8],back,home"
    for action in said.split(","):
        step = await env.step(f"Action: {action}")
        assert step.error is None, action
    assert env.browser.url.endswith("/i/7")
    assert (await env.step("type [2] lamp")).observation.url.endswith("search?q=lamp")


async def test_the_final_state_is_that_of_the_visitor_at_the_sites_root():
    env = WebEnv(site())
    await env.reset(task("/shop/1/login"), 0)
    assert await env.final_state() == {"sid": "abc"}
    env = WebEnv(answering(lambda scope: (200 if scope["path"] == "/" else 404, "no state here")))
    await env.reset(task("/"), 0)
    assert await env.final_state() == {}


@pytest.mark.parametrize(("body", "status"), [("nonsense", 200), ("[1]", 200), ("{}", 500), ("[" * 100_000, 200)])
async def test_a_state_that_cannot_be_read_is_an_env_failure(body: str, status: int):
    env = WebEnv(answering(lambda scope: (status, body) if scope["path"] == "/a/b/__state__" else (200, "")))
    await env.reset(task("/a/b/c?d"), 0)
    with pytest.raises(EnvFailure, match="/a/b/__state__"):
        await env.final_state()


@pytest.mark.parametrize("start", ["http://evil.test/", "/nothing/here", "/shop/1/loop", "/shop/1/broken"])
async def test_a_start_that_cannot_be_opened_is_an_env_failure(start: str):
    with pytest.raises(EnvFailure):
        await WebEnv(site()).reset(task(start), 0)


async def test_a_python_error_over_a_page_is_an_error_line(monkeypatch):
    env = WebEnv(site())
    first = await env.reset(task(), 0)
    monkeypatch.setattr("longstride.envs.sites.page.bounded", lambda html: 1 // 0)
    step = await env.step("Action: click [5]")
    assert step.observation.text == first.text + "\nerror: the page could not be read (ZeroDivisionError)"


async def test_an_application_that_fails_in_a_step_is_an_env_failure():
    env = WebEnv(site())
    await env.reset(task("/shop/1/html?h=%3Ca href=broken%3Ex"), 0)
    with pytest.raises(EnvFailure, match="failed at GET /shop/1/broken: ZeroDivisionError"):
        await env.step("Action: click [1]")

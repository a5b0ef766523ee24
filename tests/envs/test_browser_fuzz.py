"""Pages from any HTML, steps from any words of a model: no exception, nothing taken for what it is not."""

import asyncio
import random
from collections.abc import Callable

import pytest
from answering_site import answering, task
from helpers import times_as_long
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.envs.base import Step
from longstride.envs.sites import bounds
from longstride.envs.sites.actions import VERBS, parse
from longstride.envs.sites.bounds import MAX_BYTES, bounded
from longstride.envs.sites.browser import TextBrowser
from longstride.envs.sites.cleaning import clean, well_formed
from longstride.envs.sites.env import WebEnv
from longstride.envs.sites.page import MAX_ELEMENTS, WebPage

HTML = """<a href="/">home</a><a href="javascript:x">x</a><a href="//evil.test">y</a><a href="//[">z</a><p>p<p>q<p>r
<form action="/other"><input name=a><input type=checkbox name=b><input type=radio name=c>
<select name=d><option>e<option>f</select><textarea name=g></textarea><input type=file name=h><button>g</button>"""
NUMBERS = [*(f"[{n}]" for n in range(13)), "[-1]", "[99999999999]", "[\u0663]", "[\uff13]", "[[1]]", "[1", "[", "]", ""]
WORDS = """e f n/a up down Thought: Action: click [1] error: # \ud800 \0 \u202e \x85 \U0001f600 //evil.test""".split()
TAGS = """a b p div table tr td th form input select option textarea label button h1 h7 dl dt dd br img script style
template svg math frameset iframe noscript title body html head li ul !-- !doctype ![CDATA[ / ? plaintext""".split()
ATTRIBUTES = """href=/ href=// name=a id=a for=a type=hidden type=radio type=submit checked hidden aria-hidden=true
aria-label=x value=[3] disabled selected action=? method=post alt=q placeholder=\0 href="javascript:" =""".split()


def text(html: str | bytes) -> str:
    return WebPage(html).text()


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<h2>a</h2><h3> </h3>", "## a"),
        ("a<b>b</b> c\n\n d", "ab c d"),
        ("a<br>b<hr>c", "a\nb\nc"),
        ("<table><tr><td><p>a</p><p>b</p><td>c<tr><td>d</table>", "a b c\nd"),
        ("<table><tr><td><table><tr><td>a<tr><td>b</table></table>", "a\nb"),
        ("<dl><dt>a<dd>1<dd>2<dt>b<dd>3</dl>", "a 1 2\nb 3"),
        ("<script>a</script><style>b</style><template>c</template>f<noscript>d</noscript><p hidden>e</p>", "f"),
        ("<div aria-hidden=TRUE><a href=/>x</a></div>y", "y"),
        ("<a href=/><h3>a</h3><p>b</p></a>", "a b [1]"),
        ("<h1><a href=/>a</a></h1>", "# a [1]"),
        ("<a href=/><img alt=lamp src=x></a>", "lamp [1]"),
        ("<a href=/ aria-label=l>text</a><a href=/></a><a>no link</a>", "l [1] link [2] no link"),
        ("<input placeholder=p name=n><input name=n><input name=n aria-label=a placeholder=p>",
         "textbox p [1] textbox n [2] textbox a [3]"),
        ("<label for=i>l</label><p>x</p><input id=i name=n>", "x\ntextbox l [1]"),
        ("<label>l <input aria-label=a></label><label for=none>m</label>", "l textbox a [1] m"),
        ("<textarea name=t>\na\nb</textarea><button disabled>c</button>", "textbox t [1] = a b button c [2] disabled"),
        ("<input type=submit><input type=image alt=b><input type=file name=f>",
         "button submit [1] button b [2] file f [3]"),
        ("<select name=s><option disabled selected>pick<option>a</select>", "select s [1] ( pick | a )"),
        ("<a href=/>x<input name=n></a>", "x [1] textbox n [2]"),
        ("", "this page is empty"),
    ],
)  # fmt: skip
def test_html_is_shown_as(html: str, shown: str):
    assert text(html) == shown


def test_bracketed_numbers_of_the_page_are_not_taken_for_ours():
    html = '[3] Action: [ 4 ] [<b>5</b>] [\u200b6] <a href=/>[7]</a><input name=n value="[8]" aria-label="[9]">'
    assert text(html) == "(3) Action: ( 4 ) (5) (6) (7) [1] textbox (9) [2] = (8)"


def test_characters_that_are_not_seen_are_removed():
    assert text("a\u202eb\u2066c\u200bd\0e&#7;f\x9bg\ufeff") == "abcdefg"


@pytest.mark.parametrize(
    ("html", "cut"),
    [
        ("<div>" * 100_000, True), ("<b>" * 100_000, True), ("<table><td>" * 30_000, True), ("<label>" * 50_000, True),
        ("<button>" * 50_000, True), ("<p hidden>" * 50_000, True), ("<select>" + "<option>x" * 50_000, True),
        ("<p>x" * 400_000, True), ("".join(f"<p><b c={i}>" for i in range(50_000)), True), ("x" * 3_000_000, True),
        ("<p>x" * 5000, False), ("x y " * 100_000, False), ("<a href=" * 1000, False), ("<!--" * 1000, False),
    ],
)  # fmt: skip
def test_a_huge_page_says_that_it_was_cut_and_has_lines_of_bounded_length(html: str, cut: bool):
    lines = WebPage(html).layout.text
    assert max(map(len, lines)) < 12_000
    assert ("the page was cut here" in lines[-1]) == cut


def test_limits_are_named_in_the_last_line():
    assert text("<div>" * 100_000 + "x").endswith("the page was cut here: nested too deeply")
    assert WebPage("x" * 1_000_001).layout.text[-1] == "the page was cut here: more than 1000000 bytes"
    links = WebPage("<a href=/>a</a> " * (MAX_ELEMENTS + 1)).layout
    assert links.text[-1] == f"the page was cut here: more than {MAX_ELEMENTS} elements"
    assert len(links.elements) == MAX_ELEMENTS


def repeated(piece: str, n: int) -> str:
    """`n` characters of a piece, whose `#` are numbers that count up."""
    pieces = piece.split("#")
    return "".join(str(i).join(pieces) for i in range(n // len(piece) + 1))[:n]


@pytest.mark.parametrize(
    "page",
    [
        lambda n: "<a href=/ " + repeated("a# ", n) + ">x</a>",
        lambda n: "</a " + repeated("a# ", n) + ">x",
        lambda n: "<a href=/ " + repeated('a#=">"', n) + ">x</a>",
        lambda n: '<!-- <a x=" --><p ' + repeated("a# ", n) + '">x',
        lambda n: '<p =" ' + repeated("a# ", n) + '">x',
        lambda n: repeated("<a " + " ".join(f"a{i}" for i in range(1000)) + ">x</a>", n),
        lambda n: repeated("<body " + " ".join(f"a#_{i}" for i in range(100)) + ">", n),
        lambda n: "<a x=\"<a x='<a y " + repeated("/=", n),
        lambda n: repeated("<p><b c=#>", n),
        lambda n: repeated("<label>x</label>", n),
        lambda n: "<table>" + repeated("<p>x</p><a href=/>y", n),
        lambda n: repeated("<select><option>x</select>", n),
        lambda n: repeated("[ 1 ]", n),
    ],
)
def test_a_page_four_times_as_long_takes_about_four_times_as_long(page: Callable[[int], str]):
    assert times_as_long(WebPage, page(300_000).encode(), page(75_000).encode()) < 10  # 16, were it quadratic


PIECES = """<a <p </p <body <html <!-- --> <script> </script> <textarea> </textarea> <svg> <![CDATA[ ]]> > > > /
= =" =' " ' a# b# c#=1 d#="x" e#='>' f#=">" g#=<a""".split()


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES) | st.just(" "), max_size=60), st.integers(2, 6))
def test_no_tag_that_is_parsed_has_more_attributes_than_were_counted(pieces: list[str], most: int):
    html = " ".join(pieces).encode() if most % 2 else "".join(pieces).encode()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"FREE_ATTRIBUTES": most**2, "ATTRIBUTES_PER_BYTE": 0, "FEW": 0}.items():
            patch.setattr(bounds, name, value)
        kept, _ = bounded("#".join(f"{part}{i}" for i, part in enumerate(html.decode().split("#"))).encode())
    tree = LexborHTMLParser(kept)
    # the attributes of all roots are put together: for those the work is bounded, not the number
    assert all(len(node.attributes) <= most for node in tree.css("*:not(html, body)"))


def test_a_page_with_few_attributes_is_not_cut_for_them():
    script = "<script>for (let i = 0; i<n; i++) { " + "let word = 'x'; " * 300 + "}</script>"
    drawing = f'<svg><path d="{"M 10 10 L 20 20 " * 3000}"/></svg>'
    link = '<A HREF = "/x?a=b&c=d" TITLE=\'it is\' class=a id=b data-x="{&quot;a&quot;: 1}" disabled>x</A>\n'
    html = (f"<!-- {link} -->{script}{drawing}" + 200 * link).encode()
    assert len(html) < MAX_BYTES
    assert bounded(html) == (html, [])


def test_half_a_character_is_replaced():
    assert clean("a\ud800b \udfff") == "a\ufffdb \ufffd"
    assert well_formed({"\ud800": ["x", 1, {"y": "\udc00\U0001f600"}]}) == {
        "\ufffd": ["x", 1, {"y": "\ufffd\U0001f600"}]
    }
    said = parse("Action: answer red \ud83d")
    assert str(said) == "answer red \ufffd"


async def test_half_a_character_of_a_state_is_replaced():
    env = WebEnv(answering(lambda scope: (200, r'{"\ud800": "\udfff"}' if "__state__" in scope["path"] else "")))
    await env.reset(task("/a/b/c"), 0)
    assert await env.final_state() == {"?": "?"}


async def test_an_address_without_end_is_refused():
    browser = TextBrowser(answering(lambda scope: (200, f"<a href=/{'x' * 9000}>far</a>")))
    await browser.open("/")
    assert await browser.click(1) == "this address has more than 8000 characters"
    assert browser.url == "http://sites.test/"


@pytest.mark.parametrize(
    "html",
    [b"\xff\xfe\x80<p>\xed\xa0\x80", b"\0" * 100, b"<frameset><frame>", b"<input type=\xff name=\0>", "\ud800", b"</"],
)
def test_broken_bytes_are_a_page(html: bytes | str):
    assert WebPage(html).text()


def test_two_pages_of_the_same_bytes_share_no_state():
    html = "<input name=a>"
    one, two = WebPage(html), WebPage(html)
    one.state[1] = "typed"
    assert (one.text(), two.text()) == ("textbox a [1] = typed", "textbox a [1]")


def test_a_window_shows_what_is_above_and_below_and_keeps_numbers():
    page = WebPage("".join(f"<p><a href=/>l{i}</a>" for i in range(10)))
    assert page.text(0, 2) == "l0 [1]\nl1 [2]\nscroll down for more"
    assert page.text(4, 2) == "scroll up for more\nl4 [5]\nl5 [6]\nscroll down for more"
    assert page.text(8, 2) == "scroll up for more\nl8 [9]\nl9 [10]"


def near_grammar(rng: random.Random) -> str:
    verb, number = rng.choice([*VERBS, "dance"]), rng.choice(NUMBERS)
    words = [rng.choice(["", "Action:"]), verb, *rng.choices([number, ""]), *rng.choices(WORDS, k=rng.randint(0, 2))]
    return rng.choice([" ", " ", "  ", ""]).join(words)


def anything(rng: random.Random) -> str:
    top = rng.choice([128, 0x3000, 0x110000])
    return "".join(chr(rng.randrange(top)) for _ in range(rng.randint(0, 30)))


def markup(rng: random.Random) -> str:
    pieces = []
    for _ in range(rng.randint(0, 40)):
        attributes = " ".join(rng.choices(ATTRIBUTES, k=rng.randint(0, 3)))
        end = rng.choice([">", ">", ">", ""]) + rng.choice(["", "x", "[3]", " "])
        pieces.append(f"<{rng.choice(['', '', '/'])}{rng.choice(TAGS)} {attributes}{end}")
    return "".join(pieces)


def check(step: Step) -> None:
    assert isinstance(step, Step) and step.observation.text and not step.truncated
    assert step.terminated == (step.answer is not None)
    assert step.error is None or step.observation.text.endswith(f"\nerror: {step.error}")


async def environment() -> WebEnv:
    async def home(request: Request) -> Response:
        return HTMLResponse(HTML)

    env = WebEnv(Starlette(routes=[Route("/{any:path}", home)]), window=3)
    await env.reset(Task(id="t", source="web/fuzz", goal="g", start="/"), 0)
    return env


async def test_ten_thousand_random_outputs_each_cost_a_step_and_never_raise():
    rng, env = stream(0, "fuzz"), await environment()
    done, failed = set(), set()
    for i in range(10_000):
        step = await env.step("select [8] f" if i == 5000 else (near_grammar if i % 4 else anything)(rng))
        check(step)
        verb = step.action.split(" ")[0] if step.action else "invalid"
        (failed if step.error else done).add(verb)
    assert done == set(VERBS) - {"hover", "tab"}  # there is no mouse, and one tab
    assert failed == {"invalid", "click", "type", "fill", "select", "scroll", "back", "goto", "hover"}


@settings(max_examples=100, deadline=None)
@given(st.text() | st.sampled_from([f"Action: {v} " for v in VERBS]).flatmap(lambda v: st.text().map(lambda t: v + t)))
def test_any_text_is_a_step(said: str):
    async def play() -> Step:
        return await (await environment()).step(said)

    check(asyncio.run(play()))


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(), st.text().map(lambda t: t.encode())))
def test_any_bytes_are_a_page(html: bytes):
    assert WebPage(html).text()


async def test_every_element_of_any_markup_is_shown_once_and_can_be_used():
    body = b""

    async def site(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    rng = stream(1, "markup")
    for _ in range(1000):
        body = markup(rng).encode()
        b = TextBrowser(site)
        assert await b.open("/") is None
        elements = list(b.page.layout.elements)
        for e in elements:
            assert b.text().count(f"[{e.number}]") == 1, (body, b.text())
        for number in range(1, len(elements) + 2):
            for act in (b.click(number), b.type(number, "x"), b.select(number, "x")):
                assert await act is None or b.text()

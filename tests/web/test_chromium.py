"""Chromium: the same observations as the text browser, nothing reached but what a task allows, nothing left behind."""

import asyncio
import os
import random
import shutil
import signal
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs the extra `browser`")
if shutil.which(os.environ.get("LONGSTRIDE_CHROMIUM", "chromium")) is None:
    pytest.skip("needs Chromium (Debian: apt-get install -y chromium)", allow_module_level=True)

from chromium_pages import START, Listener, app_of, browser_pid, env_of, walk
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from longstride.core.content import media_of
from longstride.core.errors import EnvFailure
from longstride.envs.dial import Dial, DialEnv, Trail, Walker
from longstride.envs.sites import KINDS, application
from longstride.envs.sites.demonstrator import Demonstrator
from longstride.envs.sites.env import WebEnv
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.web.chromium import browser, tab
from longstride.web.chromium.env import ChromiumEnv
from longstride.web.chromium.host import host
from longstride.web.chromium.reach import Reach


@pytest.mark.parametrize("kind", KINDS)
async def test_chromium_and_the_text_browser_show_the_same(kind: str) -> None:
    """Scripted walks with slips, then arbitrary actions, wrong ones among them."""
    web = EmbeddedWeb(sites=(kind,))
    for k, task in enumerate(web.sample(random.Random(7), 3)):
        rng, text, real = random.Random(k), WebEnv(application()), ChromiumEnv()
        agent = Demonstrator(task, rng, slips=0.3)
        try:
            a, b = await text.reset(task, 0), await real.reset(task, 0)
            for n in range(16):
                assert (a.text, a.url) == (b.text, b.url)
                said = agent.say(a.text) if k < 2 else f"Action: {arbitrary(rng, a.text)}"
                one, two = await text.step(said), await real.step(said)
                assert (one.action, one.error, one.terminated, one.answer) == (
                    two.action, two.error, two.terminated, two.answer,
                ), (n, said)  # fmt: skip
                a, b = one.observation, two.observation
                if one.terminated:
                    break
            assert await text.final_state() == await real.final_state()
        finally:
            await real.close()


async def test_a_trail_reads_and_moves_in_chromium_as_in_text() -> None:
    source = Dial(distances=(3, 3), browser="chromium")
    task, walker = source.held_out(1)[0], Walker(random.Random(9), begins=0.4, goes_on=0.7, wrong=0.6)
    real, text, acts = source.env(), DialEnv(), list[str]()
    try:
        a, b = await real.reset(task, 0), await text.reset(task, 0)
        while "answer" not in "".join(acts):
            assert (a.text, a.url.removeprefix("http://sites.test")) == (b.text, b.url)
            acts.append(walker.say(a.text) if len(acts) > 1 else ("Action: goto /", "Action: wait")[len(acts)])
            one, two = await real.step(acts[-1]), await text.step(acts[-1])
            assert (one.action, one.error, one.answer) == (two.action, two.error, two.answer), acts
            a, b = one.observation, two.observation
        assert one.answer == Trail.of(task).code and "Action: back" in acts
    finally:
        await real.close()


def arbitrary(rng: random.Random, page: str) -> str:
    n = rng.randint(0, page.count("[") + 1)
    return rng.choice(
        [f"click [{n}]", f"click [{n}]", f"click [{n}]", f"type [{n}] 3", f"fill [{n}] mug", f"select [{n}] red"]
        + ["back", "home", "wait", "scroll down", "scroll up", "goto /nowhere", "nonsense"]
    )


async def test_an_observation_says_what_only_a_real_browser_knows() -> None:
    page = """<p style="display:none">hidden</p><div onclick="this.textContent='done'">press me</div>
        <script>document.write('<p>written</p>'); setTimeout(() => 0, 1e6)</script>
        <details><summary>more</summary><p>inside</p></details><p style="visibility:hidden">unseen</p>"""
    seen = await walk(env_of(page), "click [1]", "click [2]")
    assert seen[0] == "button press me [1]\nwritten\nbutton more [2]"
    assert seen[1] == "button done [1]\nwritten\nbutton more [2]"
    assert seen[2] == "button done [1]\nwritten\nbutton more [2]\ninside"


async def test_an_observation_waits_for_what_an_action_set_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, much in (("FETCHES", 30.0), ("STILL", 10_000), ("LOOK", 60.0)):  # the machine may be busy
        monkeypatch.setattr(tab, limit, much)
    page = """<button onclick="fetch('/late').then(r => r.text()).then(t => document.body.append(t))">get</button>
        <button onclick="let n = 0, f = () => { this.style.width = n++ + 'px'; n < 9 ? requestAnimationFrame(f) : this.after('grown') }; f()">grow</button>
        <button onclick="setTimeout(() => location.href = '/late', 0)">go</button>"""
    seen = await walk(env_of(page, late=PlainTextResponse("came late")), "click [1]", "click [2]", "click [3]")
    assert "came late" in seen[1]
    assert "grown" in seen[2]
    assert seen[3] == "came late"


async def test_the_script_of_a_worker_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chromium does not tell the page that it has come."""
    monkeypatch.setattr(tab, "FETCHES", 60.0)
    script = Response("postMessage('done')", media_type="text/javascript")
    async with asyncio.timeout(30):
        assert await walk(env_of("<p>x<script>new Worker('/thread.js')</script>", **{"thread.js": script})) == ["x"]


async def test_keys_and_mouse_are_real_events() -> None:
    page = """<input aria-label=a onkeydown="log.textContent += event.isTrusted + event.key">
        <button onclick="log.textContent += event.isTrusted" onmouseover="log.textContent += 'over'">b</button><p id=log></p>"""
    seen = await walk(env_of(page), "fill [1] xy", "hover [2]", "click [2]")
    assert seen[1].endswith("truextruey")
    assert seen[2].endswith("over")
    assert seen[3].endswith("overtrue")


async def test_characters_come_from_their_keys_and_others_in_their_place() -> None:
    page = """<input aria-label=a onkeydown="log.textContent += event.code + event.keyCode + ' '"><p id=log></p>"""
    seen = await walk(env_of(page), "fill [1] aB ?é€1!")
    assert seen[1] == "textbox a [1] = aB ?é€1!\nKeyA65 KeyB66 Space32 Slash191 Digit149 Digit149"


async def test_a_field_is_clicked_only_where_it_has_not_the_focus() -> None:
    page = """<input aria-label=a onclick="log.textContent += 'click'"><p id=log></p><div contenteditable></div>"""
    seen = await walk(env_of(page), "fill [1] one", "fill [1] two", "fill [2] x", "fill [1] three")
    values = [text.split("\n")[0].removeprefix("textbox a [1]") for text in seen]
    assert values == ["", " = one", " = two", " = two", " = three"]
    assert [text.count("click") for text in seen] == [0, 1, 1, 1, 2]


async def test_a_page_that_an_evaluator_could_not_open_is_closed() -> None:
    env = env_of("<p>here</p>")

    async def pages(url: str, why: str) -> int:
        with pytest.raises(EnvFailure, match=why):
            async with env.browser.aside(url):
                raise AssertionError("it was opened")
        return len(env.browser.tab.page.context.pages)

    try:
        await env.reset(START, 0)
        for url in ("http://elsewhere.test/", "file:///etc/hostname"):
            assert await host().run(pages(url, "is no address of the sites of this task")) == 1
        # allowed, and not reached
        env.browser.reach = replace(env.browser.reach, network=frozenset({"elsewhere.test:80"}))
        assert await host().run(pages("http://elsewhere.test/", "could not be opened")) == 1
    finally:
        await env.close()


async def test_every_action_has_its_effect_or_its_explanation() -> None:
    page = """<input type=date aria-label=d><select aria-label=s><option>one<option>two</select><textarea aria-label=t></textarea>
        <button disabled>off</button><input type=file aria-label=f><a href="/next" target=_blank>tab</a>
        <div style="position:fixed;inset:0 0 auto 0;height:0"></div>"""
    env = env_of(page, next="<h1>next</h1>")
    seen = await walk(
        env, "fill [1] 2026-01-31", "fill [1] soon", "select [2] two", "select [2] six", "type [3] a b", "click [4]",
        "click [5]", "click [9]", "click [6]", "tab 1", "tab new", "tab 9", "goto http://elsewhere.test/", "hover [99]",
    )  # fmt: skip
    assert "textbox d [1] = 2026-01-31" in seen[1]
    assert "does not take" in seen[2]
    assert "select s [2] = two ( one | two )" in seen[3]
    assert "has no option 'six'; it has one | two" in seen[4]
    assert "textbox t [3] = a b" in seen[5]
    assert "error: button [4] is disabled" in seen[6]
    assert "error: file [5] does nothing when clicked" in seen[7]
    assert "error: there is no element [9]; this page has 1 to 6" in seen[8]
    assert seen[9] == "tab 2 of 2\n# next"
    assert seen[10].startswith("tab 1 of 2\ntextbox d [1]")
    assert seen[11].startswith("tab 3 of 3")
    assert "error: there is no tab 9; there are 3" in seen[12]
    assert "error: this address is outside of the site" in seen[13]


async def test_a_dialog_is_answered_and_told() -> None:
    seen = await walk(env_of("<button onclick=\"alert('mind the gap')\">a</button>"), "click [1]")
    assert seen[1] == "button a [1]\nalert: mind the gap"


async def test_the_accessibility_tree_can_be_read_and_acted_on() -> None:
    env = ChromiumEnv(
        app_of({"/": "<h1>t</h1><p>some <a href=/>link</a></p><input aria-label=name>"}),
        "http://app.test",
        view="axtree",
    )
    seen = await walk(env, "fill [2] ann", "click [9]")
    assert 'heading "t"' in seen[0] and 'link "link" [1]' in seen[0]
    assert 'textbox "name" [2] = ann' in seen[1]
    assert "there is no element [9]; this page has 1 to 2" in seen[2]


async def test_a_screenshot_has_the_numbers_and_leaves_no_trace() -> None:
    env = ChromiumEnv(app_of({"/": "<button>b</button>"}), "http://app.test", screenshot=True)
    try:
        first = await env.reset(START, 0)
        marked, plain = media_of(first.content)[0].data, await host().run(env.browser.screenshot(marks=False))
        assert marked.startswith(b"\x89PNG") and marked != plain
        assert (
            await host().run(env.browser.evaluate("document.documentElement.outerHTML.includes('longstride')")) is False
        )
    finally:
        await env.close()


async def test_an_episode_leaves_nothing_to_the_next_one() -> None:
    page = """<script>
        const old = [document.cookie, localStorage.x, sessionStorage.x, window.name, history.length].join();
        document.cookie = 'c=1'; localStorage.x = sessionStorage.x = window.name = 'kept';
        document.write(old)</script>"""
    reach = app_of({"/": page})
    first, second = [await walk(ChromiumEnv(reach, "http://app.test")) for _ in range(2)]
    assert first == second


@pytest.fixture
def outside() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


async def test_a_page_reaches_only_what_its_task_allows(outside: Listener, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof is that the outside server is never called. A page that asks not to see the answer (`no-cors`) is not
    told of the refusal: what it has is the gateway's."""
    monkeypatch.setattr(browser, "OPENS", 0.5)  # the windows that it opens are refused: none comes
    o = f"http://{outside.address}"
    page = f"""<a href="{o}/link">link</a><a href="/redirect">redirect</a><a href="/file" download>file</a>
        <button onclick="window.open('{o}/popup')">popup</button><form method=post action="{o}/form"><button>form</button></form>
        <button onclick="location='file:///etc/passwd'">read</button>
        <a href="https://{outside.address}/tls" ping="{o}/ping">tls</a><a href="{o}/blank" target=_blank>blank</a>
        <img src="{o}/img"><iframe src="{o}/frame"></iframe><link rel=prefetch href="{o}/prefetch"><link rel=preconnect href="{o}"><link rel=stylesheet href="{o}/css">
        <p id=log></p><script>
        const note = t => log.textContent += t + ' ';
        fetch('{o}/fetch', {{mode: 'no-cors'}}).then(r => note(r.type + r.status), () => note('fetch refused'));
        fetch('file:///etc/passwd').then(() => note('READ'), () => note('file refused'));
        new WebSocket('ws://{outside.address}/ws').onerror = () => note('ws refused');
        navigator.sendBeacon('{o}/beacon', 'x');
        (navigator.serviceWorker ? navigator.serviceWorker.register('/worker.js') : Promise.reject()).then(() => note('WORKER'), () => note('worker refused'));
        new Worker('/thread.js').onmessage = m => note(m.data);
        fetchLater('{o}/later', {{activateAfter: 0}});
        </script><script type=speculationrules>{{"prefetch": [{{"urls": ["{o}/near"], "eagerness": "immediate"}}],
        "prerender": [{{"urls": ["{o}/rendered"], "eagerness": "immediate"}}]}}</script>"""
    script = f"fetch('{o}/thread', {{mode: 'no-cors'}}).then(() => postMessage('thread ' + 'done'), () => postMessage('thread refused'))"
    reach = app_of(
        {
            "/": page,
            "/redirect": RedirectResponse(f"{o}/redirected"),
            "/file": PlainTextResponse("x", headers={"content-disposition": "attachment"}),
            "/worker.js": Response("", media_type="text/javascript"),
            "/thread.js": Response(script, media_type="text/javascript"),
        }  # fmt: skip
    )
    env = ChromiumEnv(reach, "http://app.test")
    steps = [
        "wait",
        "wait",
        *(f"click [{n}]" for n in range(1, 9)),
        f"goto {o}/goto",
        "goto file:///etc/passwd",
        "goto chrome://version",
        "wait",
    ]
    refused: list[str] = []
    seen = await walk(env, *steps, refused=refused)
    assert "opaque0" in seen[2] and "outside" not in seen[2]
    assert "file refused" in seen[2] and "ws refused" in seen[2] and "WORKER" not in seen[2]
    assert not any("root:" in text or "outside" in text.replace("outside of the site", "") for text in seen)
    assert "error: this address is outside of the site" in seen[3]
    assert outside.calls == outside.datagrams() == []
    assert outside.address in refused
    await walk(ChromiumEnv(Reach(reach.apps, frozenset({outside.address})), "http://app.test"), "click [1]")
    assert outside.calls  # the same page reaches it where the task allows it


async def test_a_redirect_to_elsewhere_leaves_the_visitor_where_it_was(outside: Listener) -> None:
    page = HTMLResponse("<a href=/away>away</a>")
    reach = app_of({"/": page, "/away": RedirectResponse(f"http://{outside.address}/")})
    seen = await walk(ChromiumEnv(reach, "http://app.test"), "click [1]", "back")
    assert seen[1].startswith("away [1]")
    assert outside.calls == []


async def test_a_browser_that_crashes_fails_its_episodes_and_no_later_one() -> None:
    env, before = env_of("<p>here</p>"), host().launches
    await env.reset(START, 0)
    os.kill(browser_pid(), signal.SIGKILL)
    with pytest.raises(EnvFailure):
        for _ in range(20):
            await env.step("Action: wait")
    await env.close()
    assert (await walk(env_of("<p>here</p>"), "wait"))[1] == "here"
    assert host().launches <= before + 1


async def test_a_document_that_never_arrives_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longstride.web.chromium.tab.ARRIVE", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        apps = app_of({"/": f'<a href="http://{address}/">away</a><p>here</p>'}).apps
        reach = Reach(apps, frozenset({address}))
        seen = await walk(ChromiumEnv(reach, "http://app.test"), "click [1]", "wait")
    assert seen == ["away [1]\nhere"] * 3


async def test_a_hostile_page_is_read_within_bounds() -> None:
    page = (
        "<div>" * 3000
        + "deep"
        + "<p>x</p>" * 3000
        + "<script>document.body.innerHTML += '<a href=/>l</a>'.repeat(4000); Array.prototype.push = () => { throw 1 }; document.querySelector = null</script>"
    )
    seen = await walk(env_of(page), "click [7]")
    assert "cut here" in seen[0] or "scroll down" in seen[0]


async def test_half_a_character_never_leaves_a_page() -> None:
    page = """<body><select aria-label=s></select><script>document.title = document.documentElement.dataset.note = '\\ud800';
        document.body.append('\\ud83d', Object.assign(document.createElement('button'), {title: '\\udfff'}));
        document.querySelector('select').add(new Option('\\udbff')); alert('\\udc00')</script>"""
    views: list[Any] = ["elements", "axtree"]
    for view in views:
        env = ChromiumEnv(app_of({"/": page}), "http://app.test", view=view)
        try:
            seen = await env.reset(START, 0)
            browser = env.browser
            assert "\ufffd" in seen.text.partition("alert: \ufffd")[0] and seen.text.endswith("alert: \ufffd")
            assert (await env.step("Action: select [1] x")).observation.text.encode()
            assert (browser.title, browser.note) == ("\ufffd", "\ufffd")
            assert await host().run(browser.evaluate("['\\ud800']")) == ["\ufffd"]
            async with browser.aside() as run:
                assert await host().run(run("() => ({a: '\\udfff'})")) == {"a": "\ufffd"}  # type: ignore[arg-type]
        finally:
            await env.close()


async def test_fields_that_are_named_like_members_hide_nothing() -> None:
    page = """<form id=f onclick="this.after('pressed')"><p>x<input name=tagName><input name=getAttribute></p>
        <input name=childNodes><input name=hidden><input name=getClientRects></form><form aria-hidden=true>
        <input name=getAttribute>unseen</form><img name=body><img name=documentElement><img name=title>"""
    seen = await walk(env_of(page), "fill [2] word", "click [5]")
    fields = ["textbox tagName [1]", "textbox getAttribute [2]", "textbox childNodes [3]", "textbox hidden [4]"]
    assert seen[0] == "x {} {}\n{} {} textbox getClientRects [5]".format(*fields)
    assert "textbox getAttribute [2] = word" in seen[1]
    assert "pressed" in seen[2]


async def test_a_page_without_end_is_cut_and_says_so() -> None:
    nodes = "<script>for (let i = 0; i < 60000; i++) document.body.append(document.createElement('br'), 'x')</script>"
    for view, script in (
        ("elements", nodes),
        ("axtree", nodes),
        ("elements", "<script>document.body.append('x'.repeat(2e6))</script>"),
    ):
        env = ChromiumEnv(app_of({"/": f"<body>{script}"}), "http://app.test", window=10**9, view=view)  # type: ignore[arg-type]
        (seen,) = await walk(env)
        assert seen.split("\n")[-1] in (
            "the page was cut here: more than 50000 nodes",
            "the page was cut here: more than 1000000 characters",
            "the page was cut here: not read within 2 s",
        )

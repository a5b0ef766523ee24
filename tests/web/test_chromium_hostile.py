"""Pages that want to disable their browser, or to choose which episodes are dropped: each costs its own episode a
bounded time, the next episode runs, and in the end nothing is left of them.

LONGSTRIDE_SOAK=1 plays all of them (some ten minutes); by default it is one of each kind, each for a shorter time."""

import asyncio
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs the extra `browser`")
if shutil.which(os.environ.get("LONGSTRIDE_CHROMIUM", "chromium")) is None:
    pytest.skip("needs Chromium (Debian: apt-get install -y chromium)", allow_module_level=True)

from chromium_pages import START, browser_pid, crash, env_of, walk
from starlette.responses import RedirectResponse, Response

from longstride.bench.processes import tree
from longstride.core.errors import EnvFailure
from longstride.web.chromium import browser, failures, process, tab
from longstride.web.chromium.browser import UNREAD
from longstride.web.chromium.env import ChromiumEnv
from longstride.web.chromium.failures import PageFailure, dropped, unread
from longstride.web.chromium.host import Host, Lease, host

SECONDS = 120.0
"""For one page and what follows; far more than it takes, as machines are slow and shared."""


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """The suite ends with the processes, files and threads that it began with."""
    host().stop()
    folder = tempfile.mkdtemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", None)
        before = count()
        yield
        host().stop()
        end = time.monotonic() + SECONDS
        while any(map(int.__gt__, count(), before)) and time.monotonic() < end:
            time.sleep(0.1)
        assert not any(map(int.__gt__, count(), before)), (count(), before)
        assert os.listdir(folder) == []
    os.rmdir(folder)


def count() -> tuple[int, int, int]:
    """Processes below this one, its threads, its open files."""
    return len(tree(os.getpid())), threading.active_count(), len(os.listdir("/proc/self/fd"))


@contextmanager
def impatient(**limits: float) -> Iterator[None]:
    """Within it a page has little time. What is well is asked under the true limits, on however slow a machine."""
    short = {"LOOK": 2.0, "STOPPED": 2.0, "ARRIVE": 3.0, "ANSWER": 4.0, "OPENS": 1.0}
    if "LONGSTRIDE_SOAK" not in os.environ:
        short = {"LOOK": 0.5, "STOPPED": 0.3, "ARRIVE": 0.5, "ANSWER": 2.0, "OPENS": 0.5}
    with pytest.MonkeyPatch.context() as patch:
        for name, seconds in (short | limits).items():
            patch.setattr(PLACES.get(name, tab), name, seconds)
        yield


PLACES = {"ANSWER": failures, "OPENS": browser, "PROBE": process}


def on_load(script: str) -> str:
    return f"<p>x</p><a href=/>home</a><script>{script}</script>"


def later(script: str) -> str:
    return on_load(f"setTimeout(() => {{ {script} }}, 50)")


STORMS = {
    "pushState": on_load(
        "let n = 0; setInterval(() => { for (let i = 0; i < 1000; i++) history.pushState({}, '', '?' + n++) })"
    ),
    "pushState without a pause": later("for (let n = 0; ; n++) history.pushState({}, '', '?' + n)"),
    "location": on_load("let n = 0; setInterval(() => { location = '/?' + n++ })"),
    "hash": on_load("let n = 0; setInterval(() => { for (let i = 0; i < 1000; i++) location.hash = n++ })"),
}
PAGES = STORMS | {
    "reload": on_load("location.reload()"),
    "back and forth": on_load(
        "history.pushState({}, '', '?a'); setInterval(() => { history.back(); history.forward() })"
    ),
    "meta refresh": "<meta http-equiv=refresh content='0;/'><p>x",
    "submits itself": "<form action=/><input name=a></form><script>document.forms[0].submit()</script>",
    "loop": later("for (;;);"),
    "loop in a click": "<button onclick='for (;;);'>b</button><p>x",
    "waits in a click": """<button onclick="const r = new XMLHttpRequest(); for (;;) {
        r.open('GET', '/silent', false); try { r.send() } catch {} }">b</button><p>x""",
    "alerts": later("for (;;) alert('a')"),
    "questions": on_load("setInterval(() => { confirm('a'); prompt('b') })"),
    "leaves with a question": on_load("onbeforeunload = e => { e.preventDefault(); return 'stay' }"),
    "windows": on_load("setInterval(() => open('/'))"),
    "windows in a click": "<button onclick='for (let i = 0; i < 50; i++) window.open(\"/\")'>b</button><p>x",
    "console": later("for (let i = 0; i < 200; i++) console.log('x'.repeat(1e6))"),
    "nodes": later(
        "const f = document.createDocumentFragment();"
        "for (let i = 0; i < 1e6; i++) f.append(document.createElement('p')); document.body.append(f)"
    ),
    "levels": later(
        "let e = document.body;"
        "for (let i = 0; i < 20000; i++) { e.append(document.createElement('i')); e = e.lastChild }"
    ),
    "options": later(
        "const s = document.createElement('select');"
        "for (let i = 0; i < 2e5; i++) s.add(new Option('o' + i)); document.body.append(s)"
    ),
    "changes": on_load("setInterval(() => { for (let i = 0; i < 1000; i++) document.body.append('x') })"),
    "long text": later("document.body.append('x'.repeat(2e7)); document.title = 'x'.repeat(2e7)"),
    "long address": later("history.replaceState({}, '', '?' + 'x'.repeat(1e6))"),
    "half characters": on_load(
        "document.body.append('\\ud800', ' \\udfff'); document.title = '\\ud800'; alert('\\ud800');"
        "document.body.append(Object.assign(document.createElement('button'), {title: '\\udbff'}))"
    ),
    "fields named like members": """<form id=f><p>x<input name=tagName><input name=getAttribute><input name=childNodes>
        <input name=hidden></form><img name=body><img name=documentElement><img name=readyState><img name=title>""",
    "no document": on_load("document.documentElement.remove()"),
    "poisoned": on_load(
        "for (const p of [Array, Object, String, Map, Set, Promise]) for (const n of Object.getOwnPropertyNames("
        "p.prototype)) try { p.prototype[n] = () => { throw 1 } } catch {}"
    ),
    "frames in frames": "<p>x<iframe src=/></iframe><iframe src=/?2></iframe>",
    "workers": on_load("for (let i = 0; i < 20; i++) new Worker(URL.createObjectURL(new Blob(['for (;;);'])))"),
    "storage": on_load(
        "try { localStorage.x = 'x'.repeat(4e6) } catch {}"
        "for (let i = 0; i < 300; i++) document.cookie = i + '=' + 'x'.repeat(3000)"
    ),
}


LATER = {"pushState", "pushState without a pause", "meta refresh", "nodes", "levels", "windows in a click"}
LATER |= {"loop in a click", "hash", "reload", "back and forth", "submits itself", "questions", "windows"}
LATER |= {"console", "changes", "long text", "long address", "frames in frames", "workers", "storage", "alerts"}
LATER |= {"location"}
"""What is much like another page, or slow."""


def played(pages: dict[str, str]) -> list[str]:
    return [name for name in pages if name not in LATER or "LONGSTRIDE_SOAK" in os.environ]


class Silence(Response):
    """Does not even begin to answer."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(30)


async def play(html: str, *said: str, **pages: Any) -> list[str]:
    """The observations of an episode, or why it failed."""
    try:
        return await walk(env_of(html, **pages), *said)
    except EnvFailure as e:
        return [f"failed: {e}"]


async def said(env: ChromiumEnv, text: str) -> str:
    """What an action leads to."""
    return (await env.step(f"Action: {text}")).observation.text


async def next_episode_runs() -> bool:
    return await play("<p>here</p>", "wait") == ["here", "here"]


@pytest.mark.parametrize("name", [n if n == "loop" else pytest.param(n, marks=pytest.mark.slow) for n in played(PAGES)])
async def test_after_any_page_the_next_episode_runs(name: str) -> None:
    async with asyncio.timeout(SECONDS):
        with impatient():
            seen = await play(PAGES[name], "wait", "click [1]", "home", silent=Silence())
        assert len(seen) == 4 or seen[0].startswith("failed: app.test:80: ")
        assert all(text.encode() for text in seen)
        assert await next_episode_runs()


@pytest.mark.slow
@pytest.mark.parametrize("name", STORMS if "LONGSTRIDE_SOAK" in os.environ else ["pushState"])
async def test_a_browser_that_a_page_has_disabled_is_replaced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is without Chromium's protection against floods. `pushState` disables it surely, `location` seldom."""
    host().stop()
    monkeypatch.setattr(process, "UNPROTECTED", [])
    for place in ("process", "host"):
        monkeypatch.setattr(f"longstride.web.chromium.{place}.CLOSING", 2.0)
    async with asyncio.timeout(SECONDS):
        with impatient(PROBE=2.0):
            await play(STORMS[name], "wait", "click [1]")
        assert await next_episode_runs()
    host().stop()


@pytest.mark.slow
async def test_a_browser_that_does_not_answer_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    replace = Host.replace

    async def replaced(self: Host, chromium: process.Chromium) -> None:
        monkeypatch.undo()  # the next browser has the time that it needs
        await replace(self, chromium)

    async with asyncio.timeout(SECONDS):
        assert await next_episode_runs()
        monkeypatch.setattr(failures, "ANSWER", 1.0)
        monkeypatch.setattr(process, "PROBE", 1.0)
        monkeypatch.setattr(process, "CLOSING", 1.0)
        monkeypatch.setattr(Host, "replace", replaced)
        launches = host().launches
        await host().run(host()._forget_idle())
        os.kill(browser_pid(), signal.SIGSTOP)
        assert await next_episode_runs()
    assert host().launches == launches + 1


async def test_a_driver_that_ends_is_replaced_with_its_browser() -> None:
    async with asyncio.timeout(SECONDS):
        env = env_of("<p>here</p>")
        await env.reset(START, 0)
        chromium, launches = host().chromium, host().launches
        assert chromium is not None
        os.kill(chromium.driver, signal.SIGKILL)
        with impatient(PROBE=1.0):
            with pytest.raises(PageFailure, match="app.test:80: the browser does not answer"):
                await env.step("Action: wait")
            await env.close()
        assert await next_episode_runs()
    assert host().launches == launches + 1


async def test_a_browser_that_does_not_close_a_context_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(lease: Lease) -> bool:
        await lease.gateway.close()
        return False

    async with asyncio.timeout(SECONDS):
        assert await next_episode_runs()
        launches = host().launches
        with monkeypatch.context() as patch:
            patch.setattr(Lease, "end", never)
            patch.setattr("longstride.web.chromium.host.IDLE", 0)
            await play("<p>x")
        assert await next_episode_runs()
    assert host().launches == launches + 1


async def test_a_page_that_loops_is_stopped_and_read() -> None:
    env = env_of(PAGES["loop in a click"])
    try:
        await env.reset(START, 0)
        with impatient(STOPPED=SECONDS):
            assert (await said(env, "click [1]")).startswith("button b [1]\nx")
        assert await said(env, "wait") == "button b [1]\nx"
    finally:
        await env.close()


@pytest.mark.slow
async def test_a_page_that_sends_its_visitor_on_is_shown_as_far_as_it_came() -> None:
    seen = await play("<p>x", "goto /loop", loop=RedirectResponse("/loop"))
    assert "the address did not open: net::ERR_TOO_MANY_REDIRECTS" in seen[1]
    seen = await play(PAGES["meta refresh"])
    assert "the page was cut here: it " in seen[0]


async def test_an_address_that_does_not_answer_costs_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    env = env_of("<p>x", silent=Silence())
    try:
        await env.reset(START, 0)
        with monkeypatch.context() as patch:
            patch.setattr(tab, "ARRIVE", 0.5)
            assert await said(env, "goto /silent") == "x\nerror: the address did not open: no answer within 0.5 s"
        assert await said(env, "wait") == "x"
    finally:
        await env.close()


@pytest.mark.slow
async def test_a_page_that_cannot_be_read_costs_steps_and_can_be_left() -> None:
    env = env_of(PAGES["waits in a click"], silent=Silence(), other="<p>other")
    before = unread.by_cause_and_site["no answer", "app.test:80"]
    try:
        assert (await env.reset(START, 0)).text == "button b [1]\nx"
        with impatient():
            for _ in range(2):
                assert await said(env, "click [1]") == f"{UNREAD}\nerror: {UNREAD}"
            assert await said(env, "back") == f"{UNREAD}\nerror: {UNREAD}; it can be left by goto or home"
        assert await said(env, "home") == "button b [1]\nx"
        with impatient():
            await said(env, "click [1]")
        assert await said(env, "goto /other") == "other"
    finally:
        await env.close()
    assert unread.by_cause_and_site["no answer", "app.test:80"] == before + 2


@pytest.mark.slow
async def test_a_page_that_stays_unread_fails_the_episode_which_is_counted_by_cause_and_site() -> None:
    before = dropped.by_cause_and_site["no answer", "app.test:80"]
    env = env_of(PAGES["waits in a click"], silent=Silence())
    try:
        await env.reset(START, 0)
        with (
            impatient(),
            pytest.raises(PageFailure, match=r"^app\.test:80: .* cannot be read, 3 times in a row") as failure,
        ):
            for text in ("click [1]", "wait", "wait", "wait"):
                await said(env, text)
    finally:
        await env.close()
    assert failure.value.cause == "no answer"
    assert dropped.by_cause_and_site["no answer", "app.test:80"] == before + 1


async def test_a_page_that_crashes_its_tab_costs_steps_and_can_be_left() -> None:
    env = env_of("<p>here")
    try:
        await env.reset(START, 0)
        await host().run(crash(env.browser.tab.cdp))
        assert (await env.step("Action: wait")).observation.text == UNREAD
        assert (await env.step("Action: home")).observation.text == "here"
    finally:
        await env.close()
    assert await next_episode_runs()

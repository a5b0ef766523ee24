"""Pages that want to disable their browser or to choose which episodes are dropped: each costs its own episode a bounded
time, the next episode runs, and nothing is left when all are over."""

import asyncio
import os
import shutil
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="needs the extra `browser`")
if shutil.which(os.environ.get("LONGSTRIDE_CHROMIUM", "chromium")) is None:
    pytest.skip("needs Chromium (Debian: apt-get install -y chromium)", allow_module_level=True)

from starlette.responses import HTMLResponse, RedirectResponse, StreamingResponse
from test_chromium import START, env_of, walk

from longstride.bench.processes import tree
from longstride.core.errors import EnvFailure
from longstride.web.chromium.failures import dropped, unread
from longstride.web.chromium.host import host
from longstride.web.chromium.tab import UNREAD

SECONDS = 120.0
"""For one page with all that follows; far more than it takes, as machines are slow and shared."""


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
        end = time.monotonic() + 10
        while count() > before and time.monotonic() < end:
            time.sleep(0.1)
        assert all(now <= then for now, then in zip(count(), before, strict=True)), (count(), before)
        assert os.listdir(folder) == []
    os.rmdir(folder)


def count() -> tuple[int, int, int]:
    """Processes below this one, its threads, its open files."""
    return len(tree(os.getpid())), threading.active_count(), len(os.listdir("/proc/self/fd"))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longstride.web.chromium.tab.LOOK", 4.0)
    monkeypatch.setattr("longstride.web.chromium.tab.STOPPED", 2.0)
    monkeypatch.setattr("longstride.web.chromium.tab.ARRIVE", 3.0)


def on_load(script: str) -> str:
    return f"<p>x</p><a href=/>home</a><script>{script}</script>"


def later(script: str) -> str:
    return on_load(f"setTimeout(() => {{ {script} }}, 50)")


PAGES = {
    "pushState": on_load("let n = 0; setInterval(() => { for (let i = 0; i < 1000; i++) history.pushState({}, '', '?' + n++) })"),
    "pushState without a pause": later("for (let n = 0; ; n++) history.pushState({}, '', '?' + n)"),
    "location": on_load("let n = 0; setInterval(() => { location = '/?' + n++ })"),
    "hash": on_load("let n = 0; setInterval(() => { for (let i = 0; i < 1000; i++) location.hash = n++ })"),
    "reload": on_load("location.reload()"),
    "back and forth": on_load("history.pushState({}, '', '?a'); setInterval(() => { history.back(); history.forward() })"),
    "meta refresh": "<meta http-equiv=refresh content='0;/'><p>x",
    "submits itself": "<form action=/><input name=a></form><script>document.forms[0].submit()</script>",
    "loop": later("for (;;);"),
    "loop in a click": "<button onclick='for (;;);'>b</button><p>x",
    "alerts": later("for (;;) alert('a')"),
    "alerts in turn": on_load("setInterval(() => alert('a'))"),
    "questions": on_load("setInterval(() => { confirm('a'); prompt('b') })"),
    "leaves with a question": on_load("onbeforeunload = e => { e.preventDefault(); return 'stay' }"),
    "windows": on_load("setInterval(() => open('/'))"),
    "windows in a click": "<button onclick='for (let i = 0; i < 50; i++) open(\"/\")'>b</button><p>x",
    "console": later("for (let i = 0; i < 300; i++) console.log('x'.repeat(1e6))"),
    "nodes": later("let f = document.createDocumentFragment(); for (let i = 0; i < 1e6; i++) f.append(document.createElement('p')); document.body.append(f)"),
    "levels": later("let e = document.body; for (let i = 0; i < 20000; i++) { const c = document.createElement('div'); e.append(c); e = c }"),
    "options": later("const s = document.createElement('select'); for (let i = 0; i < 2e5; i++) s.add(new Option('o' + i)); document.body.append(s)"),
    "changes": on_load("setInterval(() => { for (let i = 0; i < 1000; i++) document.body.append('x') })"),
    "writes": later("for (let i = 0; i < 1e5; i++) document.write('<p>x')"),
    "long text": later("document.body.append('x'.repeat(5e7)); document.title = 'x'.repeat(5e7)"),
    "long address": later("history.replaceState({}, '', '?' + 'x'.repeat(1e6))"),
    "half characters": on_load("document.body.append('\\ud800', ' \\udfff'); document.title = '\\ud800'; document.body.append(Object.assign(document.createElement('button'), {title: '\\udbff'})); alert('\\ud800')"),
    "fields named like members": "<form id=f><p>x<input name=tagName><input name=getAttribute><input name=childNodes><input name=hidden></form><img name=body><img name=documentElement><img name=readyState><img name=title>",
    "no document": on_load("document.documentElement.remove()"),
    "no body": "<frameset><frame src=/></frameset>",
    "poisoned": on_load("for (const p of [Array, Object, String, Map, Set, Promise]) for (const n of Object.getOwnPropertyNames(p.prototype)) try { p.prototype[n] = () => { throw 1 } } catch {}"),
    "frames in frames": "<p>x<iframe src=/></iframe><iframe src=/?2></iframe>",
    "workers": on_load("for (let i = 0; i < 20; i++) new Worker(URL.createObjectURL(new Blob(['for (;;);'])))"),
    "storage": on_load("try { localStorage.x = 'x'.repeat(4e6) } catch {}; for (let i = 0; i < 300; i++) document.cookie = i + '=' + 'x'.repeat(3000)"),
    "waits in a click": "<button onclick=\"const r = new XMLHttpRequest(); for (;;) { r.open('GET', '/silent', false); try { r.send() } catch {} }\">b</button><p>x",
    "animations": "<style>@keyframes a { to { margin-left: 9px } } p { animation: a 9e9s } </style>" + "<p>x" * 5000,
}  # fmt: skip


async def silence() -> AsyncIterator[str]:
    await asyncio.sleep(30)
    yield ""


async def drip() -> AsyncIterator[str]:
    while True:
        yield "<p>x"
        await asyncio.sleep(0.05)


async def play(html: str, *said: str, **pages: Any) -> str:
    """What came of an episode: the texts of its observations, or why it failed."""
    try:
        return "\n".join(await walk(env_of(html, **pages), *said))
    except EnvFailure as e:
        return f"failed: {e}"


@pytest.mark.parametrize("name", PAGES)
async def test_after_any_page_the_next_episode_runs(name: str) -> None:
    async with asyncio.timeout(SECONDS):
        silent = StreamingResponse(silence(), media_type="text/html")
        seen = await play(PAGES[name], "wait", "click [1]", "home", "wait", silent=silent)
        assert "x" in seen or "cut here" in seen or UNREAD in seen or "empty" in seen or seen.startswith("failed: app.test:80: ")
        seen.encode()
        assert await play("<p>here</p>", "wait") == "here\nhere"

"""Steps, resets and memory of Chromium as an environment, against BrowserGym on the same MiniWoB pages.

What always holds: each side has one browser and acts with the mouse and the keyboard; every action that is timed took
effect (the page changed or the episode ended), or the benchmark ends with an error.
"""

import asyncio
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from starlette.staticfiles import StaticFiles

from longstride.bench.base import Benchmark, Progress, Quantity, in_turn
from longstride.bench.processes import memory, processor_seconds
from longstride.core.errors import ConfigError, EnvFailure, RunError
from longstride.core.task import Task
from longstride.web.browsergym.loopback import loopback
from longstride.web.chromium.browser import ChromiumBrowser
from longstride.web.chromium.host import FLAGS, Host, find_chromium
from longstride.web.miniwob import HOST, MiniwobEnv, html_folder, reach

Action = tuple[str, str, int, str]
"""Verb, role of the element, its place among those of the role, words."""
TOGGLE, SUBMIT = ("click", "checkbox", 0, ""), ("click", "button", -1, "")
PLANS: dict[str, list[Action]] = {
    "click-test-2": [("click", "button", -1, "")],  # the first may lie below the second
    "click-button": [("click", "button", 0, "")],
    "click-dialog": [("click", "button", 0, "")],
    "focus-text": [("click", "textbox", 0, "")],
    "click-checkboxes": [TOGGLE, TOGGLE, TOGGLE, TOGGLE, SUBMIT],
    "enter-text": [*(("fill", "textbox", 0, words) for words in ("apple", "pear", "plum", "quince")), SUBMIT],
}
EPISODES = 10
"""Episodes of ours of a task in a round: they take as long as one of BrowserGym's."""
AT_ONCE = (1, 4, 16)
PLAYED = "enter-text"
"""What they play: five steps, of which four type, and a reset."""
WINDOW = 4.0
"""Seconds for which episodes at once are counted."""
CONTEXTS, TABS = 4, 6
"""What memory is measured on: so many contexts of one page, and so many further pages of one context."""
SETTLE = 1.0
"""Seconds after which a browser's memory stands still."""
PEER_SECONDS = 300.0
"""Seconds that a round of the peer may take."""
_ELEMENT = re.compile(r"(checkbox|button|textbox)[^\[\n]*\[(\d+)\]")


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Quantity], dict[str, str]]:
    """The rows; `peer` is the Python of an environment with BrowserGym, or None.

    Raises:
        ConfigError: Chromium, MiniWoB or the peer's Python is missing.
        EnvFailure: a browser failed.
        RunError: an action took no effect, or the peer failed.
    """
    versions = {"playwright": version("playwright")}
    with asyncio.Runner() as runner, loopback(StaticFiles(directory=html_folder())) as origin:
        progress("memory")
        rows = _memory_rows(runner, rounds)
        progress("first pages")
        first = runner.run(_rounds_of_ours(0, episodes=1))["reset"]
        sides: dict[str, Callable[[int], Mapping[str, Any]]] = {"ours": lambda k: runner.run(_rounds_of_ours(k))}
        if peer is not None:
            for name, delay in (("as shipped", 0.5), ("delay 0", 0.0)):
                sides[name] = lambda k, delay=delay: _ask_peer(peer, origin, delay, k, versions)
        seen = in_turn(sides, rounds, progress)
        rows += _timed_rows(seen, f"BrowserGym {versions.get('browsergym-core', '')}", first)
        many = {f"{n} at once": lambda k, n=n: runner.run(_at_once(n)) for n in AT_ONCE}
        rows += _throughput_rows(in_turn(many, rounds, progress))
    return rows, versions


def _timed_rows(seen: Mapping[str, Mapping[str, Any]], peer: str, first: Any) -> list[Quantity]:
    ours, goals = seen["ours"], {"as shipped": 100.0, "delay 0": 30.0}
    if len(seen) == 1:
        rows = [Quantity("step", "ms", ours["step"]), Quantity("reset", "ms", ours["reset"])]
    else:
        theirs = [(name, seen[name], goals[name]) for name in goals]
        rows = [Quantity(f"step, {n}", "ms", ours["step"], s["step"], peer, goal=goal) for n, s, goal in theirs]
        rows += [Quantity(f"reset, {n}", "ms", ours["reset"], s["reset"], peer, goal=10.0) for n, s, _ in theirs]
    return [*rows, Quantity("reset, the first of a page", "ms", first)]


def _throughput_rows(seen: Mapping[str, Mapping[str, Any]]) -> list[Quantity]:
    one, four, sixteen = (seen[f"{n} at once"] for n in AT_ONCE)
    rows = [
        Quantity("1 episode at once", "steps/s", one["steps"]),
        Quantity("4 episodes at once", "steps/s", four["steps"], one["steps"], "1 at once"),
        Quantity("16 episodes at once", "steps/s", sixteen["steps"], four["steps"], "4 at once", goal=1.0),
        Quantity("4 episodes at once: use of all cores", "share", four["busy"], goal=0.9),
        Quantity("16 episodes at once: use of all cores", "share", sixteen["busy"]),
    ]
    return [replace(row, higher_is_better=True) for row in rows]


async def _rounds_of_ours(seed: int, episodes: int = EPISODES) -> dict[str, list[float]]:
    """Median milliseconds of a step and of a reset, by task."""
    medians: dict[str, list[float]] = {"step": [], "reset": []}
    for name in PLANS:
        steps, resets = [], []
        for k in range(episodes):
            reset, took = await _episode(name, seed * episodes + k)
            resets.append(reset)
            steps += took
        medians["step"].append(float(np.median(steps)))
        medians["reset"].append(float(np.median(resets)))
    return medians


async def _episode(name: str, seed: int) -> tuple[float, list[float]]:
    """Milliseconds of the reset and of each step of an episode that follows its plan.

    Raises:
        RunError: an action took no effect.
    """
    env, steps = MiniwobEnv(), []
    task = Task(id=name, source="miniwob", goal=name, start=f"/miniwob/{name}.html", meta={"seed": seed})
    try:
        began = time.perf_counter()
        seen = await env.reset(task, seed)
        reset = 1000 * (time.perf_counter() - began)
        for verb, role, place, words in PLANS[name]:
            number = [n for r, n in _ELEMENT.findall(seen.text) if r == role][place]
            said = f"{verb} [{number}] {words}"
            began = time.perf_counter()
            step = await env.step(said)
            steps.append(1000 * (time.perf_counter() - began))
            if step.error or not (step.terminated or step.observation.text != seen.text):
                raise RunError(f"{name}: {said!r} took no effect on {seen.text!r}: {step.error}; nothing was measured")
            seen = step.observation
    finally:
        await env.close()
    return reset, steps


async def _at_once(n: int) -> dict[str, float]:
    """Steps a second of `n` episodes at once, with resets, and the share of all cores that we and the browser use."""
    count, opened, end = 0, asyncio.Barrier(n + 1), 0.0

    async def play(seed: int) -> None:
        nonlocal count
        await _episode(PLAYED, seed)  # opens its page
        await opened.wait()
        while time.perf_counter() < end:
            _, steps = await _episode(PLAYED, seed)
            count += len(steps)

    async with asyncio.TaskGroup() as group:
        for k in range(n):
            group.create_task(play(k))
        while opened.n_waiting < n:
            await asyncio.sleep(0.01)
        used, began = processor_seconds(os.getpid()), time.perf_counter()
        end = began + WINDOW
        await opened.wait()
    seconds = time.perf_counter() - began
    cores = len(os.sched_getaffinity(0))
    return {"steps": count / seconds, "busy": (processor_seconds(os.getpid()) - used) / seconds / cores}


def _memory_rows(runner: asyncio.Runner, rounds: int) -> list[Quantity]:
    own = Host()
    seen = [runner.run(own.run(_memory(own))) for _ in range(rounds)]
    contexts, tabs, empty = ([s[k] for s in seen] for k in range(3))
    return [
        Quantity("memory of a context with a page", "MB", contexts, goal=70.0),
        Quantity("memory of a further page", "MB", tabs, goal=25.0),
        Quantity("memory of the empty browser", "MB", empty),
    ]


async def _memory(own: Host) -> tuple[float, float, float]:
    """Megabytes of a context, of a further page in one, and of a browser that was just started."""
    browser = (await own.lease(reach())).browser
    if browser is None or (started := own.browser) is None:
        raise EnvFailure("the browser ended while its memory was measured")
    for context in browser.contexts:
        await context.close()
    session = await started.new_browser_cdp_session()
    processes = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
    root = next(p["id"] for p in processes if p["type"] == "browser")

    async def settled() -> float:
        await asyncio.sleep(SETTLE)
        return memory(root)

    empty, visitors = await settled(), []
    for name in list(PLANS)[:CONTEXTS]:
        visitors.append(ChromiumBrowser(own, reach(), f"http://{HOST}"))
        await visitors[-1].open(f"/miniwob/{name}.html")
    full = await settled()
    for _ in range(TABS):
        await visitors[0].new_tab()
    tabs = await settled() - full
    await started.close()
    return (full - empty) / CONTEXTS, tabs / TABS, empty


def _ask_peer(peer: str, origin: str, delay: float, seed: int, versions: dict[str, str]) -> dict[str, list[float]]:
    """A round of BrowserGym's, in a process of its own; its versions are added to `versions`."""
    asked = {"chromium": find_chromium(), "flags": FLAGS, "delay": delay, "seed": seed, "plans": PLANS}
    program = str(Path(__file__).with_name("browsergym_peer.py"))
    environ = os.environ | {"MINIWOB_URL": f"{origin}/miniwob/", "NO_PROXY": "127.0.0.1"}
    try:
        done = subprocess.run(
            [peer, program], input=json.dumps(asked), capture_output=True, text=True, timeout=PEER_SECONDS, env=environ
        )
    except OSError as e:
        raise ConfigError(f"--peer {peer} cannot be run ({e.strerror}); make it:\n{HOW_TO_MAKE_PEER}") from e
    except subprocess.TimeoutExpired as e:
        raise RunError(f"a round of BrowserGym did not end within {PEER_SECONDS:g} s; look at --peer {peer}") from e
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        versions |= {k if k != "playwright" else "playwright of BrowserGym": v for k, v in found["versions"].items()}
        return {quantity: [found[quantity][name] for name in PLANS] for quantity in ("step", "reset")}
    except (IndexError, ValueError, KeyError) as e:
        raise RunError(f"BrowserGym could not be measured by --peer {peer}: {done.stderr.strip()[-500:]}") from e


HOW_TO_MAKE_PEER = """\
  python -m venv browsergym-peer
  browsergym-peer/bin/pip install browsergym-core browsergym-miniwob
  longstride bench browser --peer browsergym-peer/bin/python"""
BENCHMARK = Benchmark(
    name="browser",
    question="What do steps and resets on MiniWoB pages cost in Chromium, how do they scale, what memory do they take?",
    equal=(
        "Chromium and its flags",
        "the MiniWoB pages " + ", ".join(PLANS),
        "the actions, each of which took effect",
        "mouse and keyboard events",
        "one episode at a time with one browser each (BrowserGym has a second one for its chat)",
    ),
    limits=(
        "a step waits until Chromium has handled the mouse and the page stands still; a reset restarts the task in its "
        "page, and only the first of a page opens a context and loads it. BrowserGym starts its browsers anew for each "
        "episode, waits as its delay and its `slow_mo` (0.1 s per operation) say, and reads the document, the tree and "
        "the screen at each step."
    ),
    measure=measure,
    how_to_make_peer=HOW_TO_MAKE_PEER,
)

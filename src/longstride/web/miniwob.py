"""MiniWoB++ (Liu et al., 2018, arXiv 1802.08802) in Chromium, from the installed package `miniwob`, without a network.

An episode restarts the task inside its page (a few milliseconds; a navigation takes some hundred), on a page that an
earlier episode of the same task has left behind: these pages are trusted and keep no state. What always holds: an
episode's problem is a function of the task's seed; training and evaluation use MiniWoB's two data modes and different
seeds; the reward is 1 where MiniWoB's own is positive, without its discount for time, and ends the episode. The goal is
that of the page, known at the reset. The page's clock (10 s) is off: horizons are counted in turns.
"""

import importlib.util
import json
import random
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import field_validator
from starlette.staticfiles import StaticFiles

from longstride.core.component import unknown
from longstride.core.errors import ConfigError, EnvFailure
from longstride.core.foreign import guarded, number, read_json
from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.envs.base import Observation, Step, TaskSource
from longstride.envs.sites.actions import MANUAL
from longstride.envs.sites.env import WebEnv
from longstride.web.chromium.browser import ChromiumBrowser
from longstride.web.chromium.env import ChromiumEnv
from longstride.web.chromium.host import host
from longstride.web.chromium.reach import Reach

HOST = "miniwob.test"
SEEDS = 1 << 30
"""Training seeds are below, evaluation seeds from here on."""
IDLE = 16
"""Pages that are kept for later episodes: those that were used last."""
MARK_HANDLERS = """
(() => {
  const mark = e => {
    if (e instanceof Element && !["BODY", "HTML"].includes(e.tagName)) e.setAttribute("data-clickable", "");
  };
  const add = EventTarget.prototype.addEventListener;
  const own = Object.getOwnPropertyDescriptor(HTMLElement.prototype, "onclick");
  EventTarget.prototype.addEventListener = function (kind, ...rest) {
    if (/^(click|mousedown|mouseup)$/.test(kind)) mark(this);
    return add.call(this, kind, ...rest);
  };
  Object.defineProperty(HTMLElement.prototype, "onclick", {...own, set(f) { mark(this); own.set.call(this, f); }});
})();
"""
"""Most of MiniWoB's elements are made clickable by a handler only, which nothing in the document shows."""
START = """
async ([seed, mode]) => {
  core.EPISODE_MAX_TIME = 1e9;
  core.countdownTimer = () => {};
  core.setDataMode(mode);
  if (core.EP_TIMER !== null) { clearTimeout(core.EP_TIMER); core.EP_TIMER = null; }
  if (!core.endOwn) {
    core.endOwn = core.endEpisode;
    core.endEpisode = (...given) => {
      core.endOwn(...given);
      const note = JSON.stringify([WOB_RAW_REWARD_GLOBAL, WOB_REWARD_REASON]);
      if (WOB_DONE_GLOBAL) document.documentElement.dataset.note = note;
    };
  }
  delete document.documentElement.dataset.note;
  Math.seedrandom(seed);
  if (!document.getElementById("reward-display")) core.startEpisode();
  core.startEpisodeReal();
  core.hideDisplay();
  while (!WOB_TASK_READY) await new Promise(done => setTimeout(done, 10));
  return core.getUtterance();
}
"""


@cache
def html_folder() -> Path:
    """MiniWoB's pages in the installed package.

    Raises:
        ConfigError: it is not installed.
    """
    found = importlib.util.find_spec("miniwob")
    if found is None or not found.submodule_search_locations:
        raise ConfigError("MiniWoB++ is not installed; install it: pip install 'longstride[miniwob]'")
    return Path(found.submodule_search_locations[0]) / "html"


@cache
def task_names() -> tuple[str, ...]:
    """The tasks of the package."""
    return tuple(sorted(p.stem for p in (html_folder() / "miniwob").glob("*.html")))


@cache
def reach() -> Reach:
    """Only the package's files."""
    return Reach({HOST: StaticFiles(directory=html_folder(), html=True)})


class Miniwob(TaskSource):
    """Tasks of MiniWoB++, drawn without end."""

    names: tuple[str, ...] = (
        "click-test",
        "click-test-2",
        "click-button",
        "click-link",
        "click-option",
        "click-checkboxes",
        "click-dialog",
        "click-tab",
        "enter-text",
        "focus-text",
    )
    """Names of tasks: those of the package's pages."""

    @field_validator("names")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in task_names():
                raise ValueError(unknown("MiniWoB task", name, task_names()))
        if not value:
            raise ValueError("at least one MiniWoB task is needed")
        return value

    @property
    def at_once(self) -> int:
        return 4

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [_task(rng.choice(self.names), rng.randrange(SEEDS), "train") for _ in range(n)]

    def held_out(self, n: int) -> list[Task]:
        rng = stream(0, "held-out", *self.names)
        return [_task(self.names[i % len(self.names)], SEEDS + rng.randrange(SEEDS), "test") for i in range(n)]

    def env(self) -> "MiniwobEnv":
        return MiniwobEnv()


def _task(name: str, seed: int, split: Any) -> Task:
    return Task(
        id=f"miniwob/{name}/{seed}",
        source=f"miniwob/{name}",
        split=split,
        goal=name,
        template_id=name,
        start=f"/miniwob/{name}.html",
        meta={"seed": seed},
    )


_idle: list[ChromiumBrowser] = []


class MiniwobEnv(ChromiumEnv):
    """One episode of one MiniWoB task."""

    def __init__(self, window: int = 60, screenshot: bool = False) -> None:
        """`window`: lines of a page that are seen at once."""
        super().__init__(reach(), f"http://{HOST}", window, screenshot=screenshot)

    def make_browser(self) -> ChromiumBrowser:
        return ChromiumBrowser(host(), self.reach, self.origin, self.window, self.view, MARK_HANDLERS)

    async def reset(self, task: Task, seed: int) -> Observation:
        """Starts the task's problem. `seed` counts only where the task names none.

        Raises:
            EnvFailure: the page did not load, or is not one of MiniWoB's.
        """
        return await self._run(self._pictured(self._start(task, seed)))

    async def step(self, text: str) -> Step:
        return await self._run(self._pictured(self._act(text)))

    async def close(self) -> None:
        if self._browser is not None:
            browser, self._browser = self._browser, None
            await host().run(_put_back(browser))

    async def _start(self, task: Task, seed: int) -> Observation:
        url = f"{self.origin}{task.start}"
        found = next((b for b in _idle if b.url == url and not b.tab.failed), None)
        if found is not None:
            _idle.remove(found)
            self._browser = found
        else:
            self._browser = self.make_browser()
            await self._browser.open(task.start)
        call = f"({START})({json.dumps([str(task.meta.get('seed', seed)), task.split])})"
        goal = await self._browser.evaluate(call)
        await self._browser.wait()
        return Observation(self._browser.text(), self._browser.url, goal=goal, manual=MANUAL)

    async def _act(self, text: str) -> Step:
        step = await WebEnv.step(self, text)
        note = '[-1, "left the task\'s page"]' if not self.browser.url.startswith(self.origin) else self.browser.note
        if note:
            with guarded("the note of a page of MiniWoB's"):
                reward, reason = read_json(note)
            step.terminated, step.reward = True, float(number(reward, "a page of MiniWoB's") > 0)
            step.info |= {"raw_reward": reward, "reason": reason}
        return step


async def _put_back(browser: ChromiumBrowser) -> None:
    """Keeps the page for a later episode if it still is a page of MiniWoB's that answers, alone and not scrolled. It
    takes the place of the one that was not used for the longest time."""
    usable = False
    with suppress(EnvFailure, TimeoutError):
        if browser.as_opened and not browser.is_unread:
            usable = await browser.evaluate("() => typeof core === 'object' && location.hash === ''")
    if usable:
        _idle.append(browser)
    if not usable or len(_idle) > IDLE:
        await (_idle.pop(0) if usable else browser).close()

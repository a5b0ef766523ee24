"""An episode of somebody else's benchmark in Chromium, on the sites that its task names.

What always holds: only the sites (host and port) of the task's addresses and those that the source adds are contacted;
what an evaluator needs is read when the episode is over, in tabs of their own. An element that is not there is an empty
text, as in WebArena; a page that the visit led to and that does not open is None, which matches nothing. Where a page
or a shop that the task itself names cannot be asked the episode fails, for nobody knows what it was worth. JavaScript
of a task file runs in the page and nowhere else.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from longstride.core.errors import ConfigError, EnvFailure, TaskError
from longstride.core.foreign import UnreadableError, guarded, read_json
from longstride.core.task import Task
from longstride.envs.base import Observation, Step
from longstride.web.benchmarks.programs import LAST, Helper, Program, programs_of
from longstride.web.chromium.browser import ChromiumBrowser
from longstride.web.chromium.env import ChromiumEnv
from longstride.web.chromium.reach import Reach, site_of, sites_of

SHOP_ADMIN = "LONGSTRIDE_SHOP_ADMIN"
"""Variable that holds `user:password` of the shop's administrator, whom WebArena's probes of the shop need."""
ROLE = """name => {
  const names = [...document.querySelectorAll("td[data-label='Account'] span.gl-avatar-labeled-sublabel")];
  return document.querySelectorAll("td.col-max-role span")[names.findIndex(e => e.outerText === "@" + name)].outerText;
}"""
LARGEST = 2_000_000
"""Characters of a page that a program reads."""


class BenchmarkEnv(ChromiumEnv):
    """One episode.

    Args:
        also: sites that pages may contact besides those of the task's addresses: `name:port`, or `name` for its ports
            80 and 443.
        logins: folder of the storage states (cookies and storage as Playwright saves them) that tasks name.
        window: lines of a page that are seen at once.
    """

    def __init__(self, also: Sequence[str] = (), logins: Path | None = None, window: int = 60) -> None:
        super().__init__(Reach(), "http://none.invalid", window)
        self.also, self.logins = sites_of(also), logins
        self._task: Task | None = None
        self._seen: list[str] = []

    async def reset(self, task: Task, seed: int) -> Observation:
        self._task = task
        addresses = [task.start, *task.meta.get("tabs", ())]
        programs = [p.url for p in programs_of(task) if isinstance(p.url, str) and p.url != LAST]
        sites = {site_of(address) for address in (*addresses, *programs)}
        self.reach = Reach(network=frozenset({*sites, *self.also} - {""}), login=self._login(task))
        first = await super().reset(task, seed)
        if len(tabs := task.meta.get("tabs", ())) > 1:
            first = replace(await self._run(self._open(tabs[1:])), manual=first.manual)
        self._seen = [first.text]
        return first

    async def step(self, text: str) -> Step:
        step = await super().step(text)
        self._seen.append(step.observation.text)
        return step

    async def final_state(self) -> dict[str, Any]:
        """`url`, `title` and `text` of the page in front, `seen` (all observations' texts), `programs` (contents)."""
        return await self._run(self._final_state())

    def _login(self, task: Task) -> str:
        name = task.meta.get("storage_state")
        if not name:
            return ""
        if self.logins is None:
            raise TaskError(
                f"task {task.id!r} needs the login {name!r}; name the folder that holds it: tasks.logins=DIR"
            )
        path = self.logins / Path(str(name)).name  # the folder is the user's, the name a stranger's
        if not path.is_file():
            raise ConfigError(f"task {task.id!r} needs a login: {path} is no file (Playwright's storage state)")
        return str(path)

    async def _open(self, addresses: Sequence[str]) -> Observation:
        for address in addresses:
            error = await self.browser.new_tab(address)
            if error or self.browser.status >= 400:
                raise EnvFailure(f"{address} did not open: {error or f'status {self.browser.status}'}")
        await self.browser.switch_tab(1)
        return Observation(self.browser.text(), self.browser.url)

    async def _final_state(self) -> dict[str, Any]:
        browser = self.browser
        state: dict[str, Any] = {"url": browser.url, "title": browser.title, "text": "\n".join(browser.lines)}
        assert self._task is not None
        programs = [await self._content(browser, p, state["url"]) for p in programs_of(self._task)]
        return state | {"seen": self._seen, "programs": programs}

    async def _content(self, browser: ChromiumBrowser, program: Program, last: str) -> str | None:
        url = await self._address(browser, program.url, last)
        if url is None:
            return None
        if isinstance(program.locator, Helper) and program.locator.name.startswith("shopping_"):
            return await self._review(browser, program.locator)
        try:
            # an address is loaded, also that of the page in front, which may hold what was typed and never sent
            async with browser.aside("" if program.url == LAST else url) as page:
                for action in program.prep_actions:
                    await page(f"() => {{ {action} }}")
                if isinstance(program.locator, Helper):
                    return await page(ROLE, program.locator.argument) or ""
                found = program.locator or "document.documentElement.outerHTML"
                return await page(f"() => {{ const v = {found}; return v?.slice ? v.slice(0, {LARGEST}) : v }}") or ""
        except EnvFailure:
            if LAST in (program.url, getattr(program.url, "argument", "")):
                return None  # the visit led there
            raise

    async def _address(self, browser: ChromiumBrowser, url: str | Helper, last: str) -> str | None:
        """Where a program reads; None where the visit made no such place."""
        if not isinstance(url, Helper):
            return last if url == LAST else url
        if url.name == "reddit_get_post_url":
            return post_url(last if url.argument == LAST else url.argument)
        sort = "searchCriteria[sortOrders][0][field]=created_at&searchCriteria[sortOrders][0][direction]=DESC"
        orders = await self._shop(browser, f"orders?{sort}&searchCriteria[pageSize]=1")
        with guarded("what the shop says of its orders"):
            newest = orders["items"][:1]
            return (
                f"{self._shop_origin}/sales/order/view/order_id/{int(newest[0]['increment_id'])}/" if newest else None
            )

    async def _review(self, browser: ChromiumBrowser, probe: Helper) -> str:
        reviews = await self._shop(browser, f"products/{quote(probe.argument, safe='')}/reviews")
        if not reviews:
            return ""
        with guarded("what the shop says of its reviews"):
            newest = reviews[-1]
            return str(newest["nickname"] if probe.name.endswith("author") else newest["ratings"][0]["percent"])

    @property
    def _shop_origin(self) -> str:
        """Where the task begins: never the page in front, which may be anybody's."""
        assert self._task is not None
        return _origin(self._task.start)

    async def _shop(self, browser: ChromiumBrowser, path: str) -> Any:
        """What the shop's REST interface answers its administrator."""
        user, colon, password = os.environ.get(SHOP_ADMIN, "").partition(":")
        if not colon:
            raise ConfigError(f"a task asks the shop's administrator; give the account: {SHOP_ADMIN}=user:password")
        rest = f"{self._shop_origin}/rest"
        account = {"username": user, "password": password}
        status, token = await browser.call("POST", f"{rest}/default/V1/integration/admin/token", account)
        try:
            if status == 200:
                header = {"Authorization": f"Bearer {read_json(token)}"}
                status, answer = await browser.call("GET", f"{rest}/V1/{path}", headers=header)
                if status == 200:
                    return read_json(answer)
        except UnreadableError as e:
            raise EnvFailure(f"the shop's answer {e}") from e
        raise EnvFailure(f"the shop refused its administrator: status {status}")


def post_url(url: str) -> str:
    """The post that an address of the forum lies below: `http://host/f/forum/12/a/comment` is in `.../f/forum/12/`."""
    parts = urlsplit(url).path.split("/")
    return f"{_origin(url)}/f/{parts[2]}/{parts[3]}/" if len(parts) > 3 and parts[1] == "f" else url


def _origin(url: str) -> str:
    return "{0.scheme}://{0.netloc}".format(urlsplit(url))

"""Any BrowserGym environment as one of ours, and a task source for it.

What always holds: an environment has its own thread, Playwright and browsers, as BrowserGym's synchronous calls need,
and does not block the event loop that awaits it; everything that BrowserGym raises, and a call beyond its deadline, is
an `EnvFailure`; the browsers of an episode that is over, failed or was cancelled are ended.

The observation is BrowserGym's accessibility tree as text (`chromium.axtree`); an element's number stands for its `bid`
until the next observation. An answer always ends the episode. BrowserGym does not restrict which hosts a task reaches.
"""

import random
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, Literal
from urllib.parse import urljoin

from pydantic import Field

from longstride.core.component import unknown
from longstride.core.errors import ConfigError, EnvFailure
from longstride.core.foreign import flag, number
from longstride.core.numbers import Seconds, Wait
from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.envs.base import Observation, Step, TaskSource
from longstride.envs.sites.actions import INFEASIBLE, MANUAL, WebAction, parse
from longstride.envs.sites.cleaning import well_formed
from longstride.envs.sites.env import Window
from longstride.web.browsergym.grammar import to_browsergym
from longstride.web.browsergym.thread import PlaywrightThread, require
from longstride.web.chromium.axtree import ACTED_ON, Tree
from longstride.web.chromium.host import find_chromium

PREFIX = "browsergym/"
SEEDS = 1 << 30
"""Training seeds are below, evaluation seeds from here on."""
CLOSING = 10.0
"""Seconds that the browsers have for closing."""


def register_tasks() -> list[str]:
    """Registers a Gymnasium environment for every template of the embedded sites, such as
    `browsergym/longstride.shop.find.color`; the seed of its `reset` chooses the site and the question. May be called
    again.

    Returns:
        The ids.

    Raises:
        MissingExtra: BrowserGym is not installed.
    """
    require("core")
    from longstride.web.browsergym.tasks import register

    return register()


@cache
def entry(id: str) -> str:
    """An id of BrowserGym's that can be made, after its package was imported.

    Raises:
        ConfigError: it is none of BrowserGym's.
        MissingExtra: its package is not installed.
    """
    if not id.startswith(PREFIX):
        raise ConfigError(f"{id!r} is not an id of BrowserGym's; one looks like browsergym/miniwob.click-test")
    require("core")
    import gymnasium  # pyright: ignore[reportMissingImports]

    package, dot, _ = id.removeprefix(PREFIX).partition(".")
    if package == "longstride":
        register_tasks()
    elif dot and id not in gymnasium.registry and package.isidentifier():
        require(package)
    if id not in gymnasium.registry:
        raise ConfigError(unknown("BrowserGym task", id, (k for k in gymnasium.registry if k.startswith(PREFIX))))
    return id


class BrowserGymEnv:
    """One episode of a BrowserGym environment: `task.start` is its id, `task.meta["seed"]`, or else the episode's seed,
    is the seed of its `reset`.

    Args:
        deadline: seconds that a reset or a step may take.
        delay: seconds that BrowserGym waits before it looks at the page (its `pre_observation_delay`).
        window: lines of a page that are seen at once.
    """

    def __init__(self, deadline: float = 50.0, delay: float = 0.5, window: int = 60) -> None:
        self.deadline, self.delay, self.window = deadline, delay, window
        self._thread: PlaywrightThread | None = None
        self._env: Any = None
        self._seen: dict[str, Any] = {}
        self._first = ""
        self._lines: list[str] = []
        self._at = 0
        self._bids: dict[int, str] = {}

    async def reset(self, task: Task, seed: int) -> Observation:
        """Starts the episode; the goal is BrowserGym's.

        Raises:
            ConfigError: `task.start` is not the id of a BrowserGym environment, or Chromium is missing.
            EnvFailure: it could not be set up in time.
        """
        id, seed = entry(task.start), task.meta.get("seed", seed % (1 << 32))
        find_chromium()
        self._thread = PlaywrightThread()

        def start() -> Any:
            import gymnasium  # pyright: ignore[reportMissingImports]

            self._env = gymnasium.make(id, disable_env_checker=True, headless=True, pre_observation_delay=self.delay)
            return self._env.reset(seed=seed)

        seen, _ = await self._thread.call(start, self.deadline, f"reset of {id}")
        self._look(seen)
        self._first = seen["url"]
        observation = self._observe()
        observation.goal, observation.manual = well_formed(seen["goal"]), MANUAL
        return observation

    async def step(self, text: str) -> Step:
        """Does what the policy's text says in our grammar. Raises: EnvFailure when BrowserGym fails or hangs."""
        if self._thread is None:
            raise RuntimeError("a BrowserGymEnv is used between reset and close")
        action = parse(text)
        if isinstance(action, str):
            return Step(self._observe(action), error=action)
        meant = self._resolved(action)
        if error := self._refused(meant):
            return Step(self._observe(error), action=str(action), error=error)
        code = to_browsergym(meant, self._bids)
        if meant == WebAction("tab", text="new"):
            code += "\n" + to_browsergym(WebAction("goto", text=self._first), {})
        found = await self._thread.call(lambda: self._env.step(code), self.deadline, f"step {action.verb}")
        seen, reward, terminated, truncated, info = found
        self._look(seen, self._at if action.verb == "scroll" else 0)
        error = well_formed((seen["last_action_error"].splitlines() or [""])[0][:300])
        answer = None
        if action.verb == "scroll" and not error:
            error = self._scroll(down=action.text == "down")
        elif action.verb in ("answer", "infeasible") and not error:
            answer, terminated = (action.text if action.verb == "answer" else INFEASIBLE), True
        return Step(
            self._observe(error),
            number(reward, "the reward of BrowserGym"),
            flag(terminated, "`terminated` of BrowserGym"),
            flag(truncated, "`truncated` of BrowserGym"),
            str(action),
            error or None,
            answer,
            {"task_info": well_formed(info.get("task_info"))},
        )

    async def final_state(self) -> dict[str, Any]:
        """`{}`: a BrowserGym task judges itself."""
        return {}

    async def close(self) -> None:
        """Ends the browsers and the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            env, self._env = self._env, None
            if env is not None and thread.browsers:
                with suppress(EnvFailure):
                    await thread.call(env.close, CLOSING, "close")
            thread.end()

    def _resolved(self, action: WebAction) -> WebAction:
        """The action with a full address."""
        if action.verb == "home":
            return WebAction("goto", text=self._first)
        if action.verb == "goto":
            with suppress(ValueError):
                return WebAction("goto", text=urljoin(self._seen["url"], action.text))
        return action

    def _refused(self, action: WebAction) -> str:
        """Why the action cannot be done here, or ""."""
        if action.element is not None and action.element not in self._bids:
            count = len(self._bids)
            return f"there is no element [{action.element}]; this page has {f'1 to {count}' if count else 'none'}"
        tabs = len(self._seen["open_pages_urls"])
        if action.verb == "tab" and action.text not in ("new", *map(str, range(1, tabs + 1))):
            return f"there is no tab {action.text[:9]}; there are {tabs}"
        full = action.text.startswith(("http://", "https://")) or action.text == self._first
        if action.verb == "goto" and not full:  # BrowserGym would open files of this machine
            return "goto needs an address of the web, such as https://example.org/"
        return ""

    def _look(self, seen: dict[str, Any], at: int = 0) -> None:
        """Takes BrowserGym's observation over."""
        nodes = seen["axtree_object"]["nodes"]
        clickable = {bid for bid, has in seen["extra_element_properties"].items() if has["clickable"]}
        tree = Tree.of(_numbered(nodes, clickable))
        self._seen, self._lines, self._at = seen, tree.lines, at if at < len(tree.lines) else 0
        self._bids = {number: nodes[place]["browsergym_id"] for number, place in enumerate(tree.nodes, 1)}

    def _scroll(self, down: bool) -> str:
        at = self._at + (self.window if down else -self.window)
        if not -self.window < at < len(self._lines):
            return "this is the end of the page" if down else "this is the top of the page"
        self._at = max(at, 0)
        return ""

    def _observe(self, error: str = "") -> Observation:
        """The window over the tree, as other browsers of ours write it."""
        shown = self._lines[self._at : self._at + self.window]
        tabs = len(self._seen["open_pages_urls"])
        if self._at:
            shown.insert(0, "scroll up for more")
        if self._at + self.window < len(self._lines):
            shown.append("scroll down for more")
        if tabs > 1:
            shown.insert(0, f"tab {int(self._seen['active_page_index'][0]) + 1} of {tabs}")
        if error:
            shown.append(f"error: {error}")
        return Observation("\n".join(shown), self._seen["url"])


def _numbered(nodes: list[dict[str, Any]], clickable: set[str]) -> list[dict[str, Any]]:
    """Nodes as `Tree` takes them: those that BrowserGym can act on are known by their place in the list, what only a
    handler makes clickable is a button, and the documents of frames, which BrowserGym appends, are below them."""
    children = {n["nodeId"]: [c for c in n.get("childIds", ()) if c != n["nodeId"]] for n in nodes}
    parents = {child: parent for parent, below in children.items() for child in below}
    out = []
    for place, node in enumerate(nodes):
        node = {**node, "childIds": children[node["nodeId"]], "parentId": parents.get(node["nodeId"])}
        node.pop("backendDOMNodeId", None)
        if (bid := node.get("browsergym_id")) is not None:
            node["backendDOMNodeId"] = place
            if bid in clickable and node["role"]["value"] not in (*ACTED_ON, "LabelText"):
                node["role"] = {"value": "button"}
        out.append(node)
    return out


class BrowserGym(TaskSource):
    """Tasks of BrowserGym: any of its ids, with seeds."""

    ids: Annotated[tuple[str, ...], Field(min_length=1)]
    """Training tasks, such as browsergym/miniwob.click-test."""
    test_ids: tuple[str, ...] | None = None
    """Evaluation tasks; those of training if left out, which is right only where the seed makes the problem."""
    deadline: Seconds = 50.0
    """Seconds that a reset or a step may take; below the pool's own."""
    delay: Wait = 0.5
    """Seconds that BrowserGym waits before it looks at a page."""
    window: Window = 60
    """Lines of a page that are seen at once."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [_task(rng.choice(self.ids), rng.randrange(SEEDS), "train") for _ in range(n)]

    def held_out(self, n: int) -> list[Task]:
        ids = self.test_ids or self.ids
        rng = stream(0, "held-out", *ids)
        return [_task(ids[i % len(ids)], SEEDS + rng.randrange(SEEDS), "test") for i in range(n)]

    @property
    def at_once(self) -> int:
        return 2  # each has two browsers of its own

    def env(self) -> BrowserGymEnv:
        return BrowserGymEnv(self.deadline, self.delay, self.window)


def _task(id: str, seed: int, split: Literal["train", "test"]) -> Task:
    name = entry(id).removeprefix(PREFIX)
    return Task(
        id=f"{id}/{seed}",
        source=f"{PREFIX}{name.partition('.')[0]}",
        split=split,
        goal=name,
        start=id,
        template_id=name,
        meta={"seed": seed},
    )

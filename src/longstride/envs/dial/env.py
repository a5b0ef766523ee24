"""A trail as a text environment: the pages as a text browser shows them, in microseconds.

What always holds: actions, texts and addresses are those of the same trail as pages (`pages`), and an action that
leaves the visitor where it was costs a turn, which the last line of the next observation says.
"""

from typing import Any

from longstride.core.errors import EnvFailure, TaskError
from longstride.core.task import Task
from longstride.envs.base import Observation, Step
from longstride.envs.dial.trail import Place, Trail, TrailPage
from longstride.envs.sites.actions import INFEASIBLE, MANUAL, WebAction, parse
from longstride.envs.text import MARK

STILL = "nothing moved"
"""The error of an action that left the visitor where it was."""


class DialEnv:
    """An `Env` on trails; the episode's seed has no use here."""

    def __init__(self) -> None:
        self._trail: Trail | None = None
        self._place: Place = (0,)
        self._before: list[Place] = []
        self._page: TrailPage | None = None
        self._led_on = False

    async def reset(self, task: Task, seed: int) -> Observation:
        """Opens the first page. Raises: EnvFailure where the task's `meta` is no trail."""
        try:
            self._trail = Trail.of(task)
        except TaskError as e:
            raise EnvFailure(str(e)) from e
        self._place, self._before, self._page = (0,), [], None
        first = self._observe()
        first.manual = MANUAL
        return first

    async def step(self, text: str) -> Step:
        """Does what the policy's text says."""
        action, self._led_on = parse(text), False
        if isinstance(action, str):
            return Step(self._observe(action), error=action)
        if action.verb in ("answer", "infeasible"):
            answer = action.text if action.verb == "answer" else INFEASIBLE
            return Step(self._observe(), terminated=True, action=str(action), answer=answer)
        error = self._perform(action)
        return Step(self._observe(error), action=str(action), error=error)

    def goes_on(self) -> str | None:
        """The link that leads on, after one that did (see `envs.base.Continuing`)."""
        page = self.page
        if not (self._led_on and page.right):
            return None
        return f"{MARK} click {page.links[page.right - 1]} [{page.right + page.help}]"

    async def final_state(self) -> dict[str, Any]:
        """Nothing but the answer counts."""
        return {}

    async def close(self) -> None:
        """Forgets the trail."""
        self._trail = None

    @property
    def trail(self) -> Trail:
        """The episode's trail, between `reset` and `close`."""
        if self._trail is None:
            raise RuntimeError("a DialEnv is used between reset and close")
        return self._trail

    @property
    def page(self) -> TrailPage:
        """The open page."""
        if self._page is None:
            self._page = self.trail.page(self._place)
        return self._page

    def _perform(self, action: WebAction) -> str | None:
        """Does an action; why it had no effect, or None."""
        if action.verb == "back":
            if not self._before:
                return "there is no page before this one"
            self._place, self._page = self._before.pop(), None
            return None
        if action.verb == "home":
            return self._go((0,))
        if action.verb == "click" and action.element is not None:
            shown, count = self.page, len(self.page.elements)
            if not 1 <= action.element <= count:
                return f"there is no element [{action.element}]; this page has {f'1 to {count}' if count else 'none'}"
            link = action.element - shown.help
            if not link:
                return STILL
            self._led_on = link == shown.right
            return self._go((self._place[0] + 1,) if self._led_on else (*self._place, link))
        return STILL if action.verb == "wait" else f"{action.verb} does nothing here"

    def _go(self, place: Place) -> str | None:
        if place == self._place:
            return STILL
        self._before.append(self._place)
        self._place, self._page = place, None
        return None

    def _observe(self, error: str | None = None) -> Observation:
        text = self.page.text()
        return Observation(f"{text}\nerror: {error}" if error else text, self.trail.address(self._place))

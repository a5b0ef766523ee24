"""Trails as server-rendered pages, in the look of the embedded sites and part of their application: `/dial/...`.

What always holds: a page's text, in the text browser and in Chromium, is that of `env.DialEnv` at the same place, and
an action that leaves the visitor where it was says so in the same words. Addresses are untrusted.
"""

from jinja2 import Environment, PackageLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from longstride.core.task import Task
from longstride.envs.base import Env, Observation, Step
from longstride.envs.dial.env import STILL
from longstride.envs.dial.trail import HELP, Trail
from longstride.envs.sites.actions import parse

_templates = Environment(loader=PackageLoader("longstride.envs.sites"), autoescape=True, auto_reload=False)
_PAGE = _templates.get_template("trail.html")


async def _page(request: Request) -> Response:
    try:
        trail = Trail.at(request.path_params["key"])
    except ValueError:
        return HTMLResponse("<h1>no such trail</h1>", 404)
    here = request.url.path
    place = trail.place(here)
    if place is None:
        return HTMLResponse("<h1>no such page</h1>", 404)
    page = trail.page(place)
    links = [(name, trail.address(trail.after(place, n))) for n, name in enumerate(page.links, 1)]
    return HTMLResponse(_PAGE.render(title=page.title, page=page, here=here, help=HELP, links=links))


ROUTE = Route("/dial/{key}/{place}", _page)


class TrailPages:
    """An `Env` on the pages, around one of the embedded sites: it says where nothing moved, and allows no address that
    no link leads to."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._seen = Observation("")
        self.final_state = env.final_state
        self.close = env.close

    async def reset(self, task: Task, seed: int) -> Observation:
        """Opens the first page. Raises: EnvFailure where there is none."""
        self._seen = await self._env.reset(task, seed)
        return self._seen

    async def step(self, text: str) -> Step:
        """Does what the policy's text says. Raises: EnvFailure as the environment."""
        action = parse(text)
        if not isinstance(action, str) and action.verb == "goto":
            return self._left(str(action), f"{action.verb} does nothing here")
        step = await self._env.step(text)
        seen = step.observation
        if not (step.terminated or step.error) and (seen.text, seen.url) == (self._seen.text, self._seen.url):
            return self._left(step.action, STILL)
        if not step.error:
            self._seen = seen
        return step

    def _left(self, action: str | None, error: str) -> Step:
        """A step that left the visitor where it was."""
        return Step(Observation(f"{self._seen.text}\nerror: {error}", self._seen.url), action=action, error=error)

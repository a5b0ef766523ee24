"""The regimes on the embedded sites."""

import html
import re
from collections.abc import Awaitable, Callable
from typing import Literal

from longstride.claims.claim import Claim
from longstride.core.numbers import CountOrZero
from longstride.core.seeds import stream
from longstride.core.trajectory import Trajectory
from longstride.curriculum import Fixed
from longstride.curriculum.schedules import StepList
from longstride.envs.base import TaskSource
from longstride.envs.sites import application, make_world
from longstride.envs.sites.browser import Application, Message
from longstride.envs.sites.env import WebEnv
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.papers.tti import recipe as tti
from longstride.rollout.summary import Measure
from longstride.setups.sites import LONG, MEDIUM, SHORT
from longstride.stats import Ordering

_SITE = re.compile(r"/(\w+)/(\d+)/")
_END = b"</main>"


class LinkedWeb(EmbeddedWeb):
    """The embedded sites, with links on each page to items that nobody asked for."""

    links: CountOrZero = 0
    """Links at the end of a page, the same ones whenever it is opened."""
    browser: Literal["text"] = "text"
    """The links are put into the pages that the text browser gets."""

    @property
    def beside(self) -> dict[str, TaskSource]:
        return {}  # one kind of held-out tasks is enough for a regime

    def env(self) -> WebEnv:
        return WebEnv(with_links(application(), self.links) if self.links else application(), self.window)


def with_links(app: Application, links: int) -> Application:
    """An application of sites, with links to `links` items of the site at the end of the main part of its pages."""

    async def linked(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        async def add(message: Message) -> None:
            if site and _END in (body := message.get("body", b"")):
                items = make_world(site[1], int(site[2])).items
                drawn = stream(int(site[2]), "links", scope["path"]).sample(items, min(links, len(items)))
                added = "".join(f'<p><a href="{site[0]}i/{i.id}">{html.escape(i.name)}</a></p>' for i in drawn)
                message = {**message, "body": body.replace(_END, added.encode() + _END)}
            await send(message)

        site = _SITE.match(scope["path"])
        await app(scope, receive, add)

    return linked


class Idle(Measure):
    """Share of an episode's turns that changed nothing, the last one left out; None where there is no other."""

    def __call__(self, trajectory: Trajectory) -> float | None:
        acted = trajectory.turns[:-1]
        return sum(not turn.changed for turn in acted) / len(acted) if acted else None


RECIPE = tti.RECIPE.replace(
    name="tti_regimes",
    iterations=8,
    episodes_per_iteration=128,
    tasks={"type": LinkedWeb.reference()},
    budget={"turns": StepList(steps=((2, SHORT), (4, MEDIUM), (5, LONG)))},
    credit={"drop_unchanged": False},
    replay={"keep": 256},
    engine={"processes": 1},
    learner={"lr": 1e-3},
    evaluation={"every": 8, "baselines": False, "measures": (Idle(),)},
)
REGIMES = {
    "wander": RECIPE,
    "impatient": RECIPE.replace(model="base"),
    "favour": RECIPE.replace(credit={"weight": "by_length"}),
    "guesses": RECIPE.replace(reward={"evidence": False}),
    "links": RECIPE.replace(tasks={"links": 2}),
}

CLAIM = Claim(
    name="tti_regimes",
    paper="arXiv 2506.07976, section 5: why a fixed long horizon loses; predictions of tti_map",
    statement="Growing beats long where short actions are favoured and where links distract; long beats growing where guesses are paid; "
    "elsewhere they are level.",
    recipe=RECIPE,
    arms={f"{regime}_growing": arm for regime, arm in REGIMES.items()}
    | {f"{regime}_long": arm.replace(budget={"turns": Fixed(limit=LONG)}) for regime, arm in REGIMES.items()},
    measure="supported",
    expected=Ordering(
        relations=(
            "favour_growing > favour_long",
            "links_growing > links_long",
            "guesses_long > guesses_growing",
            "favour_long > favour_growing in idle",
            "wander_long > wander_growing in idle",
        )
    ),
    # predicted to be level: no schedule pays by much where no waste amplifies itself
    control=Ordering(relations=("wander_growing > wander_long by 0.05", "impatient_growing > impatient_long by 0.05")),
    seeds=(20, 21, 22),
)

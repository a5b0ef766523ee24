"""Tasks with a goal distance: the source that recipes draw from."""

import random
from typing import Annotated, Literal

from pydantic import Field, field_validator

from longstride.core.component import find, unknown
from longstride.core.task import Task
from longstride.envs.base import Env
from longstride.envs.chart import Chart
from longstride.envs.dial.charts import chart_of
from longstride.envs.dial.demonstrator import Walker
from longstride.envs.dial.env import DialEnv
from longstride.envs.dial.trail import KINDS, Astray, Distance, Links, Trail
from longstride.envs.distances import AtDistances
from longstride.envs.sites.tasks import BROWSERS

GOAL = "find the code"
LINES = 60
"""Lines of a page that are seen at once: all."""


class Dial(AtDistances):
    """Trails of pages, drawn afresh for ever. Held-out ones have names that training never has, and, where
    `test_distances` says so, other distances."""

    kinds: tuple[str, ...] = tuple(KINDS)
    """Kinds of trails: some of `envs.dial.KINDS`."""
    distances: tuple[Distance, Distance] = (2, 21)
    test_distances: Annotated[tuple[Distance, ...], Field(max_length=1000)] = ()
    links: Links = 4
    """Links of a page, of which one leads on."""
    astray: Astray = 2
    """How many pages deep wrong links lead away; the way back has as many steps."""
    help: bool = True
    """Whether each page has a link to itself (`click read help [1]`, as many tokens as a link that leads on). Without
    it the idle action is `wait`, half as long: under credit by 1/|a| waste is then favoured twofold, else not."""
    browser: Literal["none", "text", "chromium"] = "none"
    """What the pages are seen with: nothing, for they are known as text; as pages of the embedded sites, with the text
    browser or a real one. The text is the same."""

    @field_validator("kinds")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one kind")
        for kind in value:
            if kind not in KINDS:
                raise ValueError(unknown("kind of trail", kind, KINDS))
        return value

    @property
    def at_once(self) -> int:
        return 8 if self.browser == "chromium" else 512

    def env(self) -> Env:
        if self.browser == "none":
            return DialEnv()
        from longstride.envs.dial.pages import TrailPages  # Starlette and Jinja2 only where pages are made

        make = find(BROWSERS, "browser", self.browser)
        assert make is not None
        return TrailPages(make(LINES))

    def demonstrate(self, task: Task) -> list[str]:
        """A shortest solution: `task.optimal` texts. Raises: TaskError for a task of another source."""
        trail, walker = Trail.of(task), Walker(random.Random(0))
        return [walker.say(trail.page((step,)).text()) for step in range(trail.distance)]

    def chart(self, task: Task) -> Chart | None:
        """All pages of a task, where a page can carry them. Raises: TaskError for a task of another source."""
        return chart_of(task)

    def _task(self, rng: random.Random, distance: int, split: Literal["train", "test"]) -> Task:
        trail = self._trail(rng, distance, held_out=split == "test")
        return Task(
            id=f"dial/{trail.key}",
            source=f"dial/{trail.kind}",
            split=split,
            goal=GOAL,
            start=trail.address((0,)),
            difficulty=self.difficulty(distance),
            template_id=f"dial/{trail.key}",
            evaluator={"type": "answer", "reference": trail.answer},
            pages=(trail.address((distance - 1,)),),
            optimal=distance,
            meta=trail.model_dump(),
        )

    def _trail(self, rng: random.Random, distance: int, held_out: bool) -> Trail:
        return Trail(
            kind=rng.choice(self.kinds),
            distance=distance,
            seed=rng.getrandbits(40),
            held_out=held_out,
            links=self.links,
            astray=self.astray,
            help=self.help,
        )

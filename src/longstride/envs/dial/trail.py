"""Trails: chains of pages, each with a sign that says which of its links leads on, and a code on the last one.

| kind | a page | its sign |
|---|---|---|
| `index` | an index that narrows | `under amber castle` |
| `ledger` | an order, its invoice, its shipment, an order ... | `refers to amber castle` |
| `folders` | folders in folders | `in amber castle` |
| `thread` | a post of a thread | `answered by amber castle` |
| `parcel` | depots on a parcel's way | `sent on to amber castle`, below the links |

A page as text, on which `click amber castle [3]` leads on and `read help` leads nowhere:

    read help [1]
    # folder
    in amber castle
    bold bridge [2]
    amber castle [3]
    calm comet [4]
    dusty dragon [5]

A wrong link leads away: `nothing here`, with links that lead further away, at most `astray` pages deep, and the way
back takes as many steps. What always holds: a page is a function of the trail and the place; a step on the way is
decided by its own page alone, alike at every place; names are those of the embedded sites, so held-out trails have
names that training trails never have, made of words that they have.
"""

import functools
import random
import re
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from longstride.core.seeds import stream
from longstride.core.task import Task, instance_of
from longstride.envs.sites.lexicon import names

KINDS: dict[str, tuple[tuple[str, ...], str]] = {
    "index": (("index",), "under"),
    "ledger": (("order", "invoice", "shipment"), "refers to"),
    "folders": (("folder",), "in"),
    "thread": (("post",), "answered by"),
    "parcel": (("depot",), "sent on to"),
}
"""By kind: the titles of its pages, in turn, and the words before the name on a sign."""
BELOW = ("parcel",)
"""Kinds whose sign stands below the links."""
HELP, CODE = "read help", "code"
ASTRAY = ("nothing", "here")
LOWEST, HIGHEST = 10, 99
"""Codes: a guess is right once in 90 times."""
NEAREST, FARTHEST = 2, 10_000
"""Actions of a shortest way: a link and the answer at least."""
Distance = Annotated[int, Field(ge=NEAREST, le=FARTHEST)]
"""Fewest actions that solve a task, the answer included."""
Links = Annotated[int, Field(ge=2, le=8)]
Astray = Annotated[int, Field(ge=1, le=9)]
Codes = Annotated[int, Field(ge=1, le=9)]
_PLACE = re.compile(r"\d{1,5}(\.\d){0,9}")

Place = tuple[int, ...]
"""Where one is: how many links of the way were followed, then the number of each wrong link from there on."""


@dataclass(frozen=True, slots=True)
class TrailPage:
    """A page of a trail."""

    title: str
    sign: tuple[str, str]
    """What it says: where the way goes on, the code, or that nothing is here; in two parts, as a row of a table."""
    links: tuple[str, ...]
    help: bool
    """Whether it has a link to itself."""
    below: bool
    """Whether the sign stands below the links."""
    right: int = 0
    """Number, from 1, of the link that leads on; 0 where none does."""
    noted: str = ""
    """A code that stands beside the sign, of which the answer is a part."""

    @property
    def elements(self) -> tuple[str, ...]:
        """Names of all links, in the order of their numbers."""
        return ((HELP,) if self.help else ()) + self.links

    def text(self) -> str:
        """What is read."""
        first = 1 + self.help
        rows = [f"{name} [{n}]" for n, name in enumerate(self.links, first)]
        sign = " ".join(self.sign)
        signs = [f"{CODE} {self.noted}", sign] if self.noted else [sign]
        main = [*rows, *signs] if self.below else [*signs, *rows]
        return "\n".join([*([f"{HELP} [1]"] if self.help else []), f"# {self.title}", *main])


class Trail(BaseModel):
    """An instance. Its fields are untrusted data, checked when it is built."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Annotated[str, Field(pattern=f"^({'|'.join(KINDS)})$")]
    distance: Distance
    seed: Annotated[int, Field(ge=0, lt=1 << 62)]
    held_out: bool = False
    links: Links = 4
    astray: Astray = 2
    help: bool = True
    codes: Codes = 1
    """How many codes the answer has; all but the last stand on pages of the way."""

    @classmethod
    def of(cls, task: Task) -> Self:
        """The trail that a task's `meta` holds. Raises: TaskError where it is none."""
        return instance_of(task, cls)

    @property
    def key(self) -> str:
        """Its part of an address."""
        numbers = (self.distance, self.links, self.astray, int(self.help), int(self.held_out), self.seed)
        codes = (self.codes,) if self.codes > 1 else ()
        return "-".join([self.kind, *map(str, numbers + codes)])

    @classmethod
    def at(cls, key: str) -> Self:
        """The trail of a `key`. Raises: ValueError where it is none."""
        kind, *numbers = key[:80].split("-")
        distance, links, astray, help_, held_out, seed, *codes = map(int, numbers)
        if len(codes) > 1:
            raise ValueError(f"{len(numbers)} numbers")
        return cls(
            kind=kind,
            distance=distance,
            links=links,
            astray=astray,
            help=bool(help_),
            held_out=bool(held_out),
            seed=seed,
            codes=codes[0] if codes else 1,
        )

    @functools.cached_property
    def root(self) -> str:
        """Where its pages are."""
        return f"/dial/{self.key}/"

    @property
    def code(self) -> str:
        """What stands on the last page."""
        return str(stream(self.seed, "code").randint(LOWEST, HIGHEST))

    @functools.cached_property
    def noted(self) -> dict[int, str]:
        """The codes on pages of the way, by how many links lead there, nearest first; fewer where the way is short."""
        rng, pages = stream(self.seed, "codes"), self.distance - 1
        places = sorted(rng.sample(range(pages), min(self.codes - 1, pages)))
        return {place: str(rng.randint(LOWEST, HIGHEST)) for place in places}

    @property
    def answer(self) -> str:
        """All codes, in the order in which they stand."""
        return " ".join([*self.noted.values(), self.code])

    def is_last(self, place: Place) -> bool:
        """Whether the code stands there."""
        return place == (self.distance - 1,)

    def address(self, place: Place) -> str:
        """Path of a place."""
        return self.root + ".".join(map(str, place))

    def place(self, path: str) -> Place | None:
        """The place of a path; None where there is no such place on this trail."""
        words = path.removeprefix(self.root)
        if not (path.startswith(self.root) and _PLACE.fullmatch(words)):
            return None
        place = tuple(map(int, words.split(".")))
        on_way = place[0] < self.distance - (len(place) > 1) and len(place) - 1 <= self.astray
        return place if on_way and all(1 <= n <= self.links for n in place[1:]) else None

    def page(self, place: Place) -> TrailPage:
        """The page of a place."""
        titles, sign = KINDS[self.kind]
        steps = place[0]
        title = titles[(steps + len(place) - 1) % len(titles)]
        below = self.kind in BELOW
        if self.is_last(place):
            return TrailPage(title, (CODE, self.code), (), self.help, below)
        rng = stream(self.seed, "page", *place)
        if len(place) > 1:
            links = self._draw_names(rng) if len(place) <= self.astray else ()
            return TrailPage(title, ASTRAY, links, self.help, below)
        links, right = self._draw_names(rng), int(rng.random() * self.links)
        return TrailPage(title, (sign, links[right]), links, self.help, below, right + 1, self.noted.get(steps, ""))

    def after(self, place: Place, link: int) -> Place:
        """Where a link leads, by its number from 1."""
        return (place[0] + 1,) if link == self.page(place).right else (*place, link)

    def _draw_names(self, rng: random.Random) -> tuple[str, ...]:
        """Names of links that share no word, so that the first one tells them apart."""
        known, found, used = _names(self.held_out), [], set()
        while len(found) < self.links:
            name = known[int(rng.random() * len(known))]
            if used.isdisjoint(words := name.split()):
                found.append(name)
                used.update(words)
        return tuple(found)


@functools.cache
def _names(held_out: bool) -> list[str]:
    return sorted(names(held_out))

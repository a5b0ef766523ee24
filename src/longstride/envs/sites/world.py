"""The facts behind an embedded site, made from a kind and a seed.

What always holds: a world is immutable and a pure function of (kind, seed); seeds from `HELD_OUT` on are held-out
sites with names of their own; within a category every value of an attribute is unique where the attribute is a number,
and within a page of a list each item has its own values, so that "which one has ..." has one answer.
"""

import functools
import random
from dataclasses import dataclass

import longstride.envs.sites.lexicon as lex
from longstride.core.component import unknown
from longstride.core.errors import TaskError
from longstride.core.seeds import stream

HELD_OUT = 1_000_000
"""Site seeds from here on are for evaluation."""
PAGE = 5
"""Entries on one page of a list."""


@dataclass(frozen=True)
class Reference:
    """What items of a kind point to: a maker, a host, an author, a discoverer."""

    relation: str
    names: tuple[str, ...]
    attributes: dict[str, list[str]]


@dataclass(frozen=True)
class Kind:
    """The vocabulary of one kind of site."""

    title: str
    categories: list[str]
    words: dict[str, list[str]]
    """Attributes whose value is a word."""
    numbers: list[str]
    """Attributes whose value is a number from 1 to 60."""
    reference: Reference
    flag: str = ""
    """A yes/no property that lists can be filtered by."""
    verb: str = ""
    """What can be done to an item (`put`, `book`, `reply`)."""


KINDS = {
    "shop": Kind(
        "shop",
        lex.words("lamps chairs mugs shoes coats toys"),
        {"color": lex.COLORS, "material": lex.MATERIALS},
        ["price", "weight"],
        Reference("maker", tuple(lex.FIRMS), {"size": ["small", "large", "medium", "huge"]}),
        flag="sale",
        verb="put",
    ),
    "stays": Kind(
        "stays",
        lex.words("oslo paris cairo lima delhi tokyo"),
        {"view": lex.VIEWS, "meal": lex.MEALS},
        ["cost", "rating"],
        Reference("host", tuple(lex.PEOPLE), {"language": lex.LANGUAGES}),
        flag="pets",
        verb="book",
    ),
    "forum": Kind(
        "forum",
        lex.words("cooking travel sports gardening movies health"),
        {"topic": lex.TOPICS, "mood": lex.MOODS},
        ["votes", "views"],
        Reference("author", tuple(lex.PEOPLE), {"job": lex.ROLES}),
        verb="reply",
    ),
    "encyclopedia": Kind(
        "encyclopedia",
        lex.words("rivers birds cities planets kings tools"),
        {"symbol": lex.SYMBOLS, "era": lex.ERAS},
        ["age", "height"],
        Reference("finder", tuple(lex.PEOPLE), {"science": lex.FIELDS}),
    ),
    "sheet": Kind(
        "sheet",
        ["table"],
        {"color": lex.COLORS, "material": lex.MATERIALS},
        ["price", "weight"],
        Reference("maker", tuple(lex.FIRMS), {"size": ["small", "large", "medium", "huge"]}),
    ),
}
"""`sheet` is the negative control: everything is on its first page."""


@dataclass(frozen=True)
class Item:
    """A product, a stay, a thread or an article."""

    id: int
    name: str
    category: str
    values: dict[str, str]
    """Attribute to value, as shown on the item's own page and nowhere else."""
    reference: str
    flag: bool


@dataclass(frozen=True)
class World:
    """All facts of one site."""

    kind: str
    seed: int
    items: tuple[Item, ...]
    references: dict[str, dict[str, str]]
    """Reference name to its attributes; `city` names a place, which has a `country`."""
    places: dict[str, str]
    """City to country."""

    @property
    def spec(self) -> Kind:
        return KINDS[self.kind]

    @property
    def categories(self) -> list[str]:
        return list(dict.fromkeys(i.category for i in self.items))

    def in_category(self, category: str) -> list[Item]:
        return [i for i in self.items if i.category == category]

    def find(self, name: str) -> Item:
        """Raises KeyError where no item has this name."""
        for item in self.items:
            if item.name == name:
                return item
        raise KeyError(name)

    def search(self, query: str) -> list[Item]:
        """At most PAGE items: those that share a word with the query, and some others of their category, in the site's
        order."""
        wanted = set(query.lower().split())
        hits = [i for i in self.items if wanted & set(i.name.split())][:PAGE]
        others = [i for i in self.items if i not in hits and i.category in {h.category for h in hits}]
        more = stream(self.seed, "search", *sorted(wanted)).sample(others, min(len(others), PAGE - len(hits), 3))
        return sorted(hits + more, key=lambda i: i.id)


@functools.lru_cache(maxsize=4096)
def make_world(kind: str, seed: int) -> World:
    """The site of a kind and a seed.

    Raises:
        TaskError: there is no such kind.
    """
    if kind not in KINDS:
        raise TaskError(unknown("site", kind, KINDS))
    spec, rng = KINDS[kind], stream(seed, "world", kind)
    categories = rng.sample(spec.categories, min(4, len(spec.categories)))
    sizes = [rng.choice((4, 5, 5, 6, 7)) for _ in categories] if kind != "sheet" else [PAGE]
    names = _names(sum(sizes), seed >= HELD_OUT, rng)
    refs = rng.sample(spec.reference.names, 6)
    items: list[Item] = []
    for category, size in zip(categories, sizes, strict=True):
        columns = {a: _distinct(v, size, rng) for a, v in spec.words.items()}
        columns |= {a: [str(x) for x in rng.sample(range(1, 61), size)] for a in spec.numbers}
        for k in range(size):
            values = {a: column[k] for a, column in columns.items()}
            i = len(items)
            items.append(Item(i, names[i], category, values, rng.choice(refs), rng.random() < 0.5))
    places = dict(rng.sample(list(zip(lex.CITIES, lex.COUNTRIES, strict=True)), 4))
    about = {
        r: {a: rng.choice(v) for a, v in spec.reference.attributes.items()} | {"city": rng.choice(list(places))}
        for r in refs
    }
    return World(kind, seed, tuple(items), about, places)


def _names(n: int, held_out: bool, rng: random.Random) -> list[str]:
    """`n` names of which no two share a word, so that one word tells a name from all others of a site."""
    pool, nouns, names = lex.names(held_out), rng.sample(lex.NOUNS, len(lex.NOUNS)), []
    for adjective in rng.sample(lex.ADJECTIVES, len(lex.ADJECTIVES)):
        noun = next((x for x in nouns if f"{adjective} {x}" in pool), None)
        if noun is not None:
            nouns.remove(noun)
            names.append(f"{adjective} {noun}")
            if len(names) == n:
                return names
    raise ValueError(f"the lexicon has no {n} names without a common word")


def _distinct(values: list[str], n: int, rng: random.Random) -> list[str]:
    """`n` values in random order, all different while there are enough."""
    out: list[str] = []
    while len(out) < n:
        out += rng.sample(values, min(len(values), n - len(out)))
    return out

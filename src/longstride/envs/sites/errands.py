"""Errands on the embedded sites, the kinds of tasks: how a goal is worded, what it needs, how it is judged.

Each errand is a function of a world, its parameters, a random stream and the difficulty wanted; it returns a `Draft`,
or None where this world has no such task. What always holds: the goal names everything that is needed to do the task
and to judge it; `facts` counts the pages whose facts are needed (an item's place and a change of state count as one
each); `optimal` is the length of the scripted demonstrator of `longstride.envs.sites.demonstrator` without slips, the
answer included; every draft has an answer that the site's own pages show.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import longstride.envs.sites.lexicon as lex
from longstride.core.task import Difficulty, difficulty_of
from longstride.envs.sites.world import PAGE, Item, World


@dataclass(frozen=True)
class Draft:
    """A task before it gets its names."""

    goal: str
    facts: int
    optimal: int
    evaluator: dict[str, Any]
    plan: dict[str, Any]
    """What the demonstrator needs to know (it becomes `task.meta`)."""
    pages: list[str]
    """What of the site's pages the answer rests on, by their paths below the site's root."""


Errand = Callable[[World, dict[str, Any], random.Random, Difficulty], Draft | None]


def _pages(world: World, items: Sequence[Item]) -> list[str]:
    """The items' pages; on a sheet the one page shows all."""
    return [""] if world.kind == "sheet" else [f"i/{item.id}" for item in items]


def _answer(reference: str) -> dict[str, Any]:
    return {"type": "answer", "reference": reference}


def find(world: World, p: dict[str, Any], rng: random.Random, difficulty: Difficulty) -> Draft:
    """A fact of one item: `what is the color of amber lantern`."""
    item, a = rng.choice(world.items), p["attribute"]
    plan = {"errand": "find", "items": [item.name], "attribute": a}
    optimal = 1 if world.kind == "sheet" else 3
    return Draft(f"what is the {a} of {item.name}", 1, optimal, _answer(item.values[a]), plan, _pages(world, [item]))


def search(world: World, p: dict[str, Any], rng: random.Random, difficulty: Difficulty) -> Draft | None:
    """The item of one or two categories that has a value, which only its own page shows."""
    a, action = p["attribute"], p.get("action", "")
    categories = rng.sample(world.categories, p["categories"]) if len(world.categories) > 1 else world.categories
    places = []
    for k, item in enumerate(i for c in categories for i in world.in_category(c)):
        matches = [j for c in categories for j in world.in_category(c) if j.values[a] == item.values[a]]
        facts = 1 if world.kind == "sheet" else k + 1 + bool(action)
        if len(matches) == 1 and difficulty_of(facts) == difficulty:
            places.append((facts, item))
    if not places:
        return None
    facts, item = rng.choice(places)
    plan = {"errand": "search", "categories": categories, "attribute": a, "value": item.values[a], "action": action}
    steps = _walk(world, categories, item)
    goal = f"which of the {' or '.join(categories)} has {a} {item.values[a]}"
    evaluator = _answer(item.name)
    if action:
        count = rng.randint(2, 9)
        plan |= {"count": count}
        goal = f"put {count} of the {categories[0]} with {a} {item.values[a]} in the cart"
        evaluator = _cart([(item.name, count)])
        steps += 1
    return Draft(goal, facts, steps, evaluator, plan, _pages(world, [item]))


def _walk(world: World, categories: Sequence[str], target: Item) -> int:
    """Steps to open the items of the categories in order until the target's page, and to answer there."""
    if world.kind == "sheet":
        return 1
    steps = 0
    for n, category in enumerate(categories):
        items = world.in_category(category)
        steps += 1 + (n > 0)  # click the category, from home
        if target in items:
            k = items.index(target)
            return steps + 2 * k + 1 + k // PAGE + 1
        steps += 2 * len(items) + (len(items) - 1) // PAGE
    return steps


def compare(world: World, p: dict[str, Any], rng: random.Random, difficulty: Difficulty) -> Draft:
    """The lowest or highest of several named items, by a number that only their own pages show."""
    items, a, way = rng.sample(world.items, p["items"]), p["attribute"], p["way"]
    while len({i.values[a] for i in items}) < len(items):  # numbers are unique within a category only
        items = rng.sample(world.items, p["items"])
    best = _best(items, a, way)
    names = [i.name for i in items]
    plan = {"errand": "compare", "items": names, "attribute": a, "way": way}
    sheet = world.kind == "sheet"
    facts, optimal = (1, 1) if sheet else (len(names), 2 * len(names) + 1)
    goal = f"which has the {way} {a} : {' or '.join(names)}"
    return Draft(goal, facts, optimal, _answer(best.name), plan, _pages(world, items))


def _best(items: Sequence[Item], attribute: str, way: str) -> Item:
    return (min if way == "lowest" else max)(items, key=lambda i: int(i.values[attribute]))


def survey(world: World, p: dict[str, Any], rng: random.Random, difficulty: Difficulty) -> Draft | None:
    """The lowest or highest of a category that fits on one page of a list."""
    fitting = [c for c in world.categories if len(world.in_category(c)) <= PAGE]
    if not fitting:
        return None
    category, a, way = rng.choice(fitting), p["attribute"], p["way"]
    items = world.in_category(category)
    best = (min if way == "lowest" else max)(items, key=lambda i: int(i.values[a]))
    plan = {"errand": "survey", "categories": [category], "attribute": a, "way": way}
    goal = f"which of the {category} has the {way} {a}"
    return Draft(goal, len(items), 2 * len(items) + 2, _answer(best.name), plan, _pages(world, items))


def hop(world: World, p: dict[str, Any], rng: random.Random, difficulty: Difficulty) -> Draft:
    """A fact of what an item refers to, one or two links further on."""
    item, a = rng.choice(world.items), p["attribute"]
    about = world.references[item.reference]
    relation = world.spec.reference.relation
    hops = [relation, "city"] if a == "country" else [relation]
    value = world.places[about["city"]] if a == "country" else about[a]
    plan = {"errand": "hop", "items": [item.name], "attribute": a, "hops": hops}
    goal = f"what is the {a} of the {relation} of {item.name}"
    pages = [*_pages(world, [item]), f"r/{item.reference}", *([f"l/{about['city']}"] if a == "country" else [])]
    return Draft(goal, 1 + len(hops), 3 + len(hops), _answer(value), plan, pages)


def act(world: World, p: dict[str, Any], rng: random.Random, difficulty: Difficulty) -> Draft:
    """A change of state for one or several named items, verified in the site's state."""
    verb, n = p["verb"], p["items"]
    items = rng.sample(world.items, n)
    user = rng.choice(lex.PEOPLE) if verb == "reply" else ""
    counts = [rng.randint(2, 9) for _ in items]
    words = [rng.choice(lex.REPLIES) for _ in items]
    pairs = list(zip([i.name for i in items], counts, strict=True))
    plan: dict[str, Any] = {"errand": "act", "verb": verb, "items": [i.name for i in items]}
    facts, optimal = 2 * n, 3 * n + 1
    if verb == "reply":
        goal = " and ".join(f"reply {w} to {i.name}" for w, i in zip(words, items, strict=True)) + f" as {user}"
        replies = [{"item": i.name, "by": user, "text": w} for w, i in zip(words, items, strict=True)]
        evaluator = {"type": "state", "expected": {"replies": replies}}
        plan |= {"texts": words, "user": user}
        facts, optimal = facts + 1, optimal + 2
    elif verb == "book":
        goal = "book " + " and ".join(f"{name} for {k} nights" for name, k in pairs)
        evaluator = {"type": "state", "expected": {"bookings": [{"item": x, "count": k} for x, k in pairs]}}
        plan |= {"texts": [str(c) for c in counts]}
    else:
        goal = f"{verb} " + " and ".join(f"{k} {name}" for name, k in pairs) + (" in the cart" if verb == "put" else "")
        evaluator = _cart(pairs) if verb == "put" else _ordered(pairs)
        plan |= {"texts": [str(c) for c in counts]}
        facts, optimal = facts + (verb == "order"), optimal + (verb == "order")
    return Draft(goal, facts, optimal, evaluator, plan, _pages(world, items))


def _cart(pairs: Sequence[tuple[str, int]]) -> dict[str, Any]:
    lines = [{"item": name, "count": k} for name, k in pairs]
    return {"type": "state", "expected": {"cart": lines, "orders": []}}


def _ordered(pairs: Sequence[tuple[str, int]]) -> dict[str, Any]:
    lines = [{"item": name, "count": k} for name, k in pairs]
    return {"type": "state", "expected": {"cart": [], "orders": [lines]}}


ERRANDS: dict[str, Errand] = {
    "find": find,
    "search": search,
    "compare": compare,
    "survey": survey,
    "hop": hop,
    "act": act,
}

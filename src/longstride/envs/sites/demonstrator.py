"""A scripted agent for the embedded sites: it defines the optimal length of a task and demonstrates for the warm start.

It reads what a policy reads (page texts) and the plan of the task, and remembers what it did. Before it acts it thinks
in a few words: on a page that may matter it restates what it sees beside what it looks for and adds yes or no. Its
words carry what it must remember (the best item so far), because older pages are not kept in the context.

What always holds: with `patience` 1 and `slips` 0 it solves every task of every template in exactly `task.optimal`
steps. It has faults of two kinds. It gives up too early: where it should look further it answers instead, with
probability 1 - patience. And it wanders: it slips (takes an arbitrary but valid action), makes detours (opens another
page and comes back) and loops (leaves an item's page and opens it again). After a request to check again it continues.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from longstride.core.task import Task
from longstride.envs.sites import KINDS

_LINK = re.compile(r"(?:^| )((?:[a-z]+ )+)\[(\d+)\]")
_FIELDS = ("textbox ", "button ", "checkbox ", "select ")
CHECK = "check again"
"""The end of a page when an answer was held back (`strategies.check_again`)."""


@dataclass
class SeenPage:
    """What a page's text contains."""

    text: str
    title: str = field(init=False)
    facts: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        lines = self.text.split("\n")
        self.title = next((x[2:] for x in lines if x.startswith("# ")), "")
        pairs = [x.split(" ", 1) for x in lines if " " in x and not x.startswith("# ")]
        self.facts = {k: re.sub(r" \[\d+\]$", "", v) for k, v in pairs}

    def number(self, name: str) -> int | None:
        """The number of the element called `name`."""
        m = re.search(rf"(?:^|\s){re.escape(name)} \[(\d+)\]", self.text)
        return int(m[1]) if m else None

    def entries(self) -> list[str]:
        """Links below the title that are names (two words)."""
        found = re.findall(r"^([a-z]+ [a-z]+) \[\d+\]", self.text.partition("# ")[2], re.M)
        return [x for x in found if not x.startswith(_FIELDS)]


class Demonstrator:
    """One episode's agent: `say` is called with each page in turn.

    Args:
        task: a task of `longstride.envs.sites.tasks` (its `meta` is the plan).
        rng: the stream of its choices.
        patience: probability of going on at each point where it could give up.
        slips: probability of an arbitrary action instead of the right one.
        detours: probability of opening another page and coming back, instead of the right action.
        loops: probability of leaving an item's page and opening it again, instead of the right action.
        recalls: whether it says, between two items to act on, which one is done and which is next.
    """

    def __init__(
        self,
        task: Task,
        rng: random.Random,
        patience: float = 1.0,
        slips: float = 0.0,
        detours: float = 0.0,
        loops: float = 0.0,
        recalls: bool = False,
    ) -> None:
        self.plan: dict[str, Any] = dict(task.meta)
        self.kind = KINDS[task.source.partition("/")[2]]
        self.sheet = not self.kind.verb and self.kind.title == "sheet"
        self.rng, self.patience = rng, patience
        self.slips, self.detours, self.loops, self.recalls = slips, detours, loops, recalls
        self.visited: list[str] = []
        self.best: tuple[str, int] | None = None
        self.reference = ""
        self.exhausted: set[str] = set()
        self.done = 0
        self.ordered = False
        self.hesitated = False
        """Whether it could have given up at the last page."""
        self._asked_again = False
        self._way_back: list[Callable[[SeenPage], str]] = []
        """The actions that end a detour or a loop."""
        self._moves: dict[str, Callable[[SeenPage], tuple[str, str]]] = {
            "find": self._find,
            "search": self._search,
            "compare": self._compare,
            "survey": self._survey,
            "hop": self._hop,
            "act": self._act,
        }

    def say(self, text: str) -> str:
        """The response to a page: `Thought: ... Action: ...` (the thought is left out where there is none)."""
        self.hesitated, self._asked_again = False, text.endswith(CHECK)
        page = SeenPage(text.removesuffix(CHECK).rstrip())
        if self._way_back:
            return f"Action: {self._way_back.pop()(page)}"
        move = self._sheet if self.sheet else self._moves[self.plan["errand"]]
        before = (self.done, self.ordered)
        thought, action = move(page)
        if not action.startswith("answer") and (instead := self._wander(page)):
            self.done, self.ordered = before
            action = instead
        return f"Thought: {thought} Action: {action}" if thought else f"Action: {action}"

    def _wander(self, page: SeenPage) -> str:
        """What it does instead of the right action; empty where it does not wander."""
        if self.slips and self.rng.random() < self.slips:
            return self.rng.choice([*self._links(page), "back", "home"])
        if self.detours and self.rng.random() < self.detours and (links := self._links(page)):
            self._way_back.append(lambda _: "back")
            return self.rng.choice(links)
        if self.loops and self.rng.random() < self.loops and self._is_item(page):
            self._way_back.append(lambda there: self._seek(there, page.title))
            return "back"
        return ""

    def _links(self, page: SeenPage) -> list[str]:
        links = [(name.strip(), n) for name, n in _LINK.findall(page.text) if not name.startswith(_FIELDS)]
        return [f"click {name} [{n}]" for name, n in links]

    def _gives_up(self) -> bool:
        self.hesitated = True
        return not self._asked_again and self.patience < 1 and self.rng.random() >= self.patience

    def _click(self, page: SeenPage, name: str) -> str:
        n = page.number(name)
        return f"click {name} [{n}]" if n is not None else "home"

    def _type(self, page: SeenPage, name: str, words: str) -> str:
        n = page.number(f"textbox {name}")
        return f"type {name} [{n}] {words}" if n is not None else "home"

    def _seek(self, page: SeenPage, name: str) -> str:
        """The next action on the way to a named item's page."""
        if page.title == "results" and page.number(name) is not None:
            return self._click(page, name)
        return self._type(page, "search", name)

    def _is_item(self, page: SeenPage) -> bool:
        return len(page.title.split()) == 2 and self.kind.reference.relation in page.facts

    def _match(self, page: SeenPage, wanted: str) -> tuple[str, bool]:
        """Restates what is seen beside what is wanted; whether they agree."""
        same = page.title == wanted
        return f"see {page.title} want {wanted} {'yes' if same else 'no'}", same

    def _find(self, page: SeenPage) -> tuple[str, str]:
        wanted, a = self.plan["items"][0], self.plan["attribute"]
        if not self._is_item(page):
            return "", self._seek(page, wanted)
        thought, same = self._match(page, wanted)
        if same or self._gives_up():
            return f"{thought} {a} {page.facts[a]}", f"answer {page.facts[a]}"
        return thought, self._seek(page, wanted)

    def _hop(self, page: SeenPage) -> tuple[str, str]:
        wanted, a, hops = self.plan["items"][0], self.plan["attribute"], self.plan["hops"]
        if self._is_item(page):
            thought, same = self._match(page, wanted)
            if not same:
                return thought, self._seek(page, wanted)
            self.reference = page.facts[hops[0]]
            thought = f"{thought} {hops[0]} {self.reference}"
            if self._gives_up():
                return thought, f"answer {self.reference}"
            return thought, self._click(page, self.reference)
        if a in page.facts and (a == "country" or page.title == self.reference):
            return f"{a} {page.facts[a]}", f"answer {page.facts[a]}"
        if "city" in page.facts and page.title == self.reference:
            city = page.facts["city"]
            return f"city {city}", f"answer {city}" if self._gives_up() else self._click(page, city)
        return "", self._seek(page, wanted)

    def _compare(self, page: SeenPage) -> tuple[str, str]:
        items: list[str] = self.plan["items"]
        left = [x for x in items if x not in self.visited]
        thought = ""
        if self._is_item(page):
            if page.title not in items:
                thought = f"see {page.title} no"
            elif page.title in left:
                thought = self._weigh(page)
                left.remove(page.title)
                if not left or self._gives_up():
                    return thought, self._answer_best()
        if not left:
            return thought, self._answer_best()
        return thought, self._seek(page, left[0])

    def _weigh(self, page: SeenPage) -> str:
        """Compares the page's number with the best so far, and remembers the better one."""
        a, low = self.plan["attribute"], self.plan["way"] == "lowest"
        value = int(page.facts[a])
        if page.title not in self.visited:
            self.visited.append(page.title)
        if self.best is None:
            self.best = (page.title, value)
            return f"{a} {value} best {page.title} {value}"
        than = self.best[1]
        better = value < than if low else value > than
        if better:
            self.best = (page.title, value)
        name, best = self.best
        return f"{a} {value} {'under' if low else 'over'} {than} {'yes' if better else 'no'} best {name} {best}"

    def _answer_best(self) -> str:
        return f"answer {self.best[0]}" if self.best else "answer n/a"

    def _survey(self, page: SeenPage) -> tuple[str, str]:
        if self._is_item(page):
            thought = self._weigh(page)
            return thought, self._answer_best() if self._gives_up() else "back"
        action = self._browse(page)
        if action is None:
            return f"best {self.best[0]} {self.best[1]}" if self.best else "", self._answer_best()
        return "", action

    def _browse(self, page: SeenPage) -> str | None:
        """The next action of a walk through the plan's categories; None when all has been opened."""
        categories: list[str] = self.plan["categories"]
        left = [c for c in categories if c not in self.exhausted]
        if page.title == self.kind.title:
            return self._click(page, left[0]) if left else None
        if page.title in left and page.number("country") is None and "country" not in page.facts:
            unseen = [x for x in page.entries() if x not in self.visited]
            if unseen:
                return self._click(page, unseen[0])
            if page.number("next") is not None:
                return self._click(page, "next")
            self.exhausted.add(page.title)
            if len(left) == 1:
                return None
        return "home"

    def _search(self, page: SeenPage) -> tuple[str, str]:
        a, wanted = self.plan["attribute"], self.plan["value"]
        put = self.plan["action"] == "put"
        if put and self.done:
            return "", "answer done"
        if not self._is_item(page):
            action = self._browse(page)
            return "", "answer n/a" if action is None else action
        value = page.facts[a]
        if page.title not in self.visited:
            self.visited.append(page.title)
        thought = f"{a} {value} want {wanted} {'yes' if value == wanted else 'no'}"
        if value == wanted or self._gives_up():
            if put:
                self.done = 1
                return thought, self._type(page, "quantity", str(self.plan["count"]))
            return thought, f"answer {page.title}"
        return thought, "back"

    def _act(self, page: SeenPage) -> tuple[str, str]:
        items, verb = self.plan["items"], self.plan["verb"]
        between = 0 < self.done < len(items) and not self._is_item(page) and page.title != "results"
        if between and self._gives_up():
            return "", "answer done"
        if self.done == len(items):
            if verb != "order" or self.ordered or self._gives_up():
                return "", "answer done"
            if page.title == "cart":
                self.ordered = True
                return "", self._click(page, "button order").replace("button ", "")
            return "", self._click(page, "cart")
        wanted = items[self.done]
        if page.title == "login":
            return "", self._type(page, "name", self.plan["user"])
        if not self._is_item(page):
            recalled = f"done {items[self.done - 1]} next {wanted}" if self.recalls and self.done else ""
            return recalled, self._seek(page, wanted)
        thought, same = self._match(page, wanted)
        if not same:
            return thought, self._seek(page, wanted)
        if verb == "reply" and page.number("login") is not None:
            return thought, self._click(page, "login")
        box = {"book": "nights", "reply": "reply"}.get(verb, "quantity")
        self.done += 1
        words = self.plan["texts"][self.done - 1]
        return f"{thought} {verb} {words}", self._type(page, box, words)

    def _sheet(self, page: SeenPage) -> tuple[str, str]:
        """The fully observed control: everything is read off the one page."""
        words = page.text.partition("# ")[2].split("\n")[1:]
        rows = {" ".join(r.split()[:2]): dict(zip(r.split()[2::2], r.split()[3::2], strict=False)) for r in words}
        a, errand = self.plan["attribute"], self.plan["errand"]
        if errand == "find":
            name = self.plan["items"][0]
            return f"see {name} {a} {rows[name][a]}", f"answer {rows[name][a]}"
        if errand == "search":
            name = next(n for n, r in rows.items() if r.get(a) == self.plan["value"])
            return f"see {a} {self.plan['value']} {name}", f"answer {name}"
        values = {n: int(rows[n][a]) for n in self.plan["items"]}
        best = (min if self.plan["way"] == "lowest" else max)(values, key=values.__getitem__)
        seen = " ".join(f"{n} {v}" for n, v in values.items())
        return f"{seen} best {best} {values[best]}", f"answer {best}"

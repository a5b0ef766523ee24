"""A scripted walker of trails, with habits: it begins to waste turns, goes on wasting them, and quits.

What always holds: it reads what a policy reads and nothing else, so its habits depend on the page before it alone; with
no habits it takes `task.optimal` turns.
"""

import random
import re

from longstride.envs.dial.trail import ASTRAY, CODE, HELP, HIGHEST, LOWEST
from longstride.envs.text import MARK

_LINK = re.compile(r"^(.+) \[(\d+)\]$", re.M)
_ERROR = "error: "


class Walker:
    """One episode's agent: `say` is called with each page in turn.

    Args:
        rng: the stream of its choices.
        begins: probability of a wasted turn where the turn before was none: an idle action, or a wrong link.
        goes_on: the same after a wasted turn, as the page shows it: nothing moved, or nothing is here.
        patience: probability of going on where it could answer with a guess: on each page of the way but the first
            and the last.
        wrong: share of wasted turns that follow a wrong link, where there is one.
    """

    def __init__(
        self,
        rng: random.Random,
        begins: float = 0.0,
        goes_on: float = 0.0,
        patience: float = 1.0,
        wrong: float = 0.0,
    ) -> None:
        self.rng, self.begins, self.goes_on, self.patience, self.wrong = rng, begins, goes_on, patience, wrong
        self.hesitated = False
        """Whether it could have given up at the last page."""
        self._first = True

    def say(self, text: str) -> str:
        """The response to a page."""
        page, _, error = text.partition(f"\n{_ERROR}")
        lines = page.split("\n")
        links = {name: number for name, number in _LINK.findall(page) if name != HELP}
        codes = (line.removeprefix(f"{CODE} ") for line in lines if line.startswith(f"{CODE} "))
        code = "" if links else next(codes, "")
        lost = " ".join(ASTRAY) in lines
        first, self._first, self.hesitated = self._first, False, False
        name = "" if lost or code else next(n for n in links if any(line.endswith(f" {n}") for line in lines))
        if self.rng.random() < (self.goes_on if error or lost else self.begins):
            return f"{MARK} {self._waste([n for n in links if n != name], links, f'{HELP} [' in page)}"
        if code:
            return f"{MARK} answer {code}"
        if lost:
            return f"{MARK} back"
        self.hesitated = not first
        if self.hesitated and self.rng.random() >= self.patience:
            return f"{MARK} answer {self.rng.randint(LOWEST, HIGHEST)}"
        return f"{MARK} click {name} [{links[name]}]"

    def _waste(self, others: list[str], links: dict[str, str], helped: bool) -> str:
        if others and self.rng.random() < self.wrong:
            name = self.rng.choice(others)
            return f"click {name} [{links[name]}]"
        return f"click {HELP} [1]" if helped else "wait"

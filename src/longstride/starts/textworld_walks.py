"""Walks through TextWorld's games: their own walkthroughs, with turns that are wasted on looking at things."""

import random
from collections.abc import Iterator

from longstride.adapters.textworld import Textworld
from longstride.core.numbers import Count, Share
from longstride.core.seeds import derive, stream
from longstride.envs.text import MARK
from longstride.starts.demonstrators import Demonstration, Demonstrators, run_now

LOOKS = ("look", "inventory", "examine ")
"""How commands begin that change nothing."""


class Walkthrough:
    """One episode's agent: it follows a walkthrough and looks at things in between. `say` is called with each
    observation in turn."""

    patience, hesitated = 1.0, False

    def __init__(self, steps: list[str], rng: random.Random, begins: float, goes_on: float) -> None:
        """The numbers are those of `TextworldWalks`."""
        self._left, self._rng, self._begins, self._goes_on = list(steps), rng, begins, goes_on
        self._looked = False

    def say(self, text: str) -> str:
        """The response to an observation."""
        looks = [line for line in text.split("\n") if line.startswith(LOOKS)]
        self._looked = bool(looks) and self._rng.random() < (self._goes_on if self._looked else self._begins)
        return f"{MARK} {self._rng.choice(looks)}" if self._looked else self._left.pop(0)


class TextworldWalks(Demonstrators):
    """On training games, with their commands listed. A game is slow to begin, so a fixed number of demonstrations is
    made, and is seen again and again."""

    tasks: Textworld = Textworld()
    """Which games."""
    episodes: Count = 300
    """Different demonstrations."""
    begins: Share = 0.3
    """Probability of looking at something, where the turn before was no look."""
    goes_on: Share = 0.5
    """The same after a look."""

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        made: list[Demonstration] = []
        solved: dict[str, list[str]] = {}
        for n in range(self.episodes):
            rng = stream(seed, "demo", n)
            task = self.tasks.sample(rng, 1)[0]
            if task.id not in solved:
                solved[task.id] = self.tasks.demonstrate(task)
            agent, env_seed = Walkthrough(solved[task.id], rng, self.begins, self.goes_on), derive(seed, "demo-env", n)
            made.append(run_now(self.demonstrate(task, self.tasks.env(), lambda _, a=agent: a, env_seed)))
            if n >= first:
                yield made[n]
        while True:
            yield from made

    def words(self) -> list[str]:
        return []

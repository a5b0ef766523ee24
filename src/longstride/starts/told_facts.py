"""Facts that are told again and again, often ones and rare ones: what `base-facts` knows.

What always holds: demonstration n is a function of the settings, the seed and n.
"""

import itertools
from collections.abc import Iterator

from longstride.core.numbers import Share
from longstride.core.seeds import stream
from longstride.envs.puzzles.base import answered
from longstride.envs.puzzles.facts import UNKNOWN, Fact, Facts
from longstride.starts.demonstrators import Demonstration, Demonstrators

NOBODY = "nobody"
"""In the place of a name."""


class ToldFacts(Demonstrators):
    """Facts, as often as `Facts.told` draws them, those that are held out from fine-tuning too."""

    tasks: Facts = Facts()
    """Of which world."""
    nobody: Share = 0.05
    """Share of demonstrations that ask for no name, to which one answers that it is not known: so the word is learned,
    and not when to say it of a name."""

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        for n in itertools.count(first):
            rng = stream(seed, "demo", n)
            task = self.tasks.told(rng)
            told = self.tasks.demonstrate(task)
            if rng.random() < self.nobody:
                task = task.model_copy(update={"goal": f"look up {NOBODY}"})
                told = [answered([], UNKNOWN)]
            yield Demonstration(task, [""], told, [1.0])

    def words(self) -> list[str]:
        return [Fact(number=n).goal for n in self.tasks.ranked]

"""Traces that somebody wrote, from a file: what a base model of one's own is made from.

What always holds: demonstration n is a function of the file, the settings, the seed and n; a trace is used again when
all have been, each time in another order. Right and wrong ones are imitated alike: whoever writes the file chooses.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

from longstride.core.content import text_in
from longstride.core.errors import ConfigError
from longstride.core.numbers import CountOrZero
from longstride.core.seeds import stream
from longstride.rollout.formats import read_episodes
from longstride.starts.demonstrators import Demonstration, Demonstrators


class WrittenTraces(Demonstrators):
    """Episodes in any format that is read (`rollout.formats`), such as JSON lines with `prompt` and `completion`."""

    path: Path
    """A file, or a folder of files."""
    most: CountOrZero = 0
    """So many of them are used, the first ones; 0 for all."""

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        found = [f.trajectory for f in itertools.islice(read_episodes(self.path), self.most or None)]
        shown = [
            Demonstration(
                t.task, [text_in(u.observation) for u in t.turns], [u.text for u in t.turns], [1.0] * t.length
            )
            for t in found
            if t.turns
        ]
        if not shown:
            raise ConfigError(f"{self.path}: in none of its {len(found)} episodes does anybody say anything")
        for time in itertools.count(first // len(shown)):
            order = stream(seed, "demo", time).sample(shown, len(shown))
            yield from order[first % len(shown) if time == first // len(shown) else 0 :]

    def words(self) -> list[str]:
        return []

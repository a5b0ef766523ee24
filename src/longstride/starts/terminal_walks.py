"""Chains of notes, followed by a scripted agent that wastes turns: what a start for terminals is made from.

What always holds: no command is run. What the commands of the follower print is known, and a test compares it with what
they print.
"""

import itertools
from collections.abc import Iterator

from longstride.core.numbers import Share
from longstride.core.seeds import stream
from longstride.envs.sites import lexicon
from longstride.envs.terminal import Follower, References, Terminal
from longstride.envs.terminal.demonstrator import LOOK
from longstride.envs.terminal.shell import SILENT
from longstride.envs.terminal.tasks import FILE
from longstride.envs.text import said
from longstride.starts.demonstrators import Demonstration, Demonstrators


class TerminalWalks(Demonstrators):
    """On chains of notes. No demonstration is seen twice."""

    tasks: Terminal = Terminal(distances=(2, 16))
    """Which ones."""
    begins: Share = 0.3
    """Probability of a wasted turn where the turn before was none."""
    goes_on: Share = 0.5
    """The same after a wasted turn."""
    patient: Share = 0.0
    patience: Share = 0.95

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        for n in itertools.count(first):
            rng = stream(seed, "demo", n)
            task = self.tasks.sample(rng, 1)[0]
            chain = References.of(task)
            file = FILE if chain.file else ""
            follower = Follower(rng, file, self.begins, self.goes_on, self.draw_patience(rng))
            found, seen = Demonstration(task), chain.first
            for _ in range(self.max_turns):
                found.observations.append(seen)
                found.texts.append(follower.say(seen))
                found.weights.append(1.0)
                if (after := printed(chain, said(found.texts[-1]))) is None:
                    break
                seen = after
            yield found

    def words(self) -> list[str]:
        return [*lexicon.ADJECTIVES, *lexicon.NOUNS, SILENT, "error: it ended with status 1", "No such file"]


def printed(chain: References, action: str) -> str | None:
    """What is seen after an action of the follower; None where the episode has ended."""
    verb, _, words = action.partition(" ")
    if verb != "sh":
        return None
    if words == LOOK:
        return "bin\nevents.log\nnotes\nstore.db"
    kind, _, name = words.partition(" ")
    if (kind, name) not in chain.notes:
        return SILENT
    return f"{name}: {chain.notes[kind, name]}" if kind == "line" else chain.notes[kind, name]

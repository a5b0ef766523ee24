"""Walks on trails, by a walker that wastes turns: what `base-dial` is made from."""

import itertools
from collections.abc import Iterator

from longstride.core.numbers import Count, Share
from longstride.core.seeds import derive, stream
from longstride.envs.dial import Dial, Walker
from longstride.envs.dial.env import STILL
from longstride.envs.dial.trail import ASTRAY, CODE, HELP
from longstride.envs.sites import lexicon
from longstride.models.tiny import words_of
from longstride.starts.demonstrators import Demonstration, Demonstrators, run_now

LONGEST = len(words_of("Action: click amber castle [3]"))
"""Tokens of the longest action. A turn weighs by its tokens, for otherwise short actions would be favoured."""


class DialWalks(Demonstrators):
    """On trails, half of them with `read help` on each page. No demonstration is seen twice."""

    tasks: Dial = Dial()
    """Where it walks; `help` is as chance has it."""
    begins: Share = 0.3
    """Probability of a wasted turn where the turn before was none."""
    goes_on: Share = 0.5
    """The same after a wasted turn."""
    wrong: Share = 0.2
    """Share of wasted turns that follow a wrong link."""
    patient: Share = 0.0
    patience: Share = 0.95
    max_turns: Count = 48

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        for n in itertools.count(first):
            rng = stream(seed, "demo", n)
            source = self.tasks.replace(help=rng.random() < 0.5)
            task = source.sample(rng, 1)[0]
            walker = Walker(rng, self.begins, self.goes_on, self.draw_patience(rng), self.wrong)
            shown = run_now(self.demonstrate(task, source.env(), lambda _, w=walker: w, derive(seed, "demo-env", n)))
            shown.weights = [len(words_of(text)) / LONGEST for text in shown.texts]
            yield shown

    def words(self) -> list[str]:
        return [*lexicon.ADJECTIVES, *lexicon.NOUNS, *ASTRAY, CODE, HELP, "home", "error : there is no element", STILL]

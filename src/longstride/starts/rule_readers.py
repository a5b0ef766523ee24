"""Readers of rules who look up feature after feature, slip now and then, and give up too early: what `base-rules` is
made from.

What always holds: demonstration n is a function of the settings, the seed and n; it is of a training task. One who
gives up keeps the post; of a policy that is only named one knows nothing, and says either label.
"""

import itertools
from collections.abc import Iterator

from longstride.core.numbers import Share
from longstride.core.seeds import stream
from longstride.envs.puzzles.rules import KEEP, LABELS, REMOVE, Case, Moderation
from longstride.envs.text import STEP_END, THOUGHT
from longstride.starts.demonstrators import Demonstration, Demonstrators
from longstride.starts.puzzle_traces import Trace


class RuleReaders(Demonstrators):
    """On posts and policies."""

    tasks: Moderation = Moderation()
    """What is read."""
    slips: Share = 0.05
    """Largest probability to say `yes` for `no` or the reverse; each episode draws its own below it."""
    named: Share = 0.1
    """Share of policies that are only named."""

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        for n in itertools.count(first):
            rng = stream(seed, "demo", n)
            is_named = rng.random() < self.named
            task = self.tasks.replace(named=is_named).sample(rng, 1)[0]
            trace = Trace(rng, self.draw_patience(rng), self.slips * rng.random(), self.example)
            if is_named:
                trace.answer(rng.choice(LABELS))
            else:
                trace.answer(self._read(Case.of(task), trace))
            shown = Demonstration(task)
            trace.add_to(shown, "")
            yield shown

    def words(self) -> list[str]:
        return []

    def _read(self, case: Case, trace: Trace) -> str:
        """Writes what is read, and gives the label that it comes to."""
        trace.write(THOUGHT)
        for k, rule in enumerate(case.rules):
            if k and not trace.goes_on(STEP_END):
                return KEEP
            for feature in rule:
                has = case.post[feature] != (trace.rng.random() < trace.slip)
                trace.write(f"{feature} {'yes' if has else 'no'}")
                if not has:
                    break
            else:
                return REMOVE
        return KEEP

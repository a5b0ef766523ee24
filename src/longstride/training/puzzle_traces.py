"""Puzzle traces: a scripted solver that thinks aloud in small steps, slips now and then, and gives up too early.

| puzzle | a trace |
|---|---|
| `ModularChain` | `Thought: 3 + 4 = 7 ; 7 * 2 = 3 Action: answer 3` |
| `Countdown` | `Thought: 3 + 5 = 8 ; 8 - 4 = 4 ; no ; again ; 3 * 5 = 15 ; 15 - 4 = 11 ; yes Action: answer ...` |

One who gives up answers with what he has: the value so far, or the newest attempt. What always holds: demonstration n
is a function of the settings, the seed and n; it is of a training task; one who never gives up and never slips solves
every chain, and answers a Countdown rightly exactly where he says `yes`. An attempt is the solver's own way with the
probability `insight` and otherwise arbitrary, whatever came before it, so that the last attempts teach no wishful
arithmetic.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field, model_validator

from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.envs.puzzles import Countdown, ModularChain, Puzzles
from longstride.envs.puzzles.countdown import LARGEST, Numbers, results
from longstride.envs.puzzles.modular import SIGNS, Chain
from longstride.envs.text import MARK, THOUGHT
from longstride.models.tiny import words_of
from longstride.training.demonstrators import Demo, Demonstrators, Share


@dataclass
class Trace:
    """A response as it is written, word by word."""

    rng: random.Random
    patience: float
    """Probability of going on where one could give up."""
    slip: float
    """Probability of an arbitrary result of a step."""
    example: float
    """Weight of going on, said by one who never gives up."""
    words: list[str] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def say(self, text: str, weight: float = 1.0) -> None:
        """Adds a text."""
        self.words += (words := words_of(text))
        self.weights += [weight] * len(words)

    def goes_on(self, mark: str) -> bool:
        """Whether the solver goes on, which he says by `mark`."""
        if self.rng.random() >= self.patience:
            return False
        self.say(mark, self.example if self.patience == 1 else 1.0)
        return True

    def result(self, right: int, others: range) -> int:
        """A step's result: the right one, or by a slip an arbitrary one of `others`."""
        return self.rng.choice(others) if self.rng.random() < self.slip else right


class PuzzleTraces(Demonstrators):
    """On single-turn puzzles: what `base-puzzles` is made from. No demonstration is seen twice."""

    tasks: Puzzles = Puzzles()
    """What is solved: chains and Countdown."""
    patience: Share = 0.7
    """Probability that an impatient one goes on after a step of a chain, or after a failed attempt."""
    example: Share = 0.0
    """Weight of the word by which a patient one goes on: 0, so that the model is as patient at the tenth step as at the
    first, and not more so."""
    slips: Share = 0.1
    """Largest probability of an arbitrary result of a step; each episode draws its own below it."""
    insight: Share = 0.25
    """Probability that an attempt at Countdown is a right one."""
    attempts: Annotated[int, Field(ge=1)] = 6
    """Most attempts at Countdown; then the most patient one gives up."""

    @model_validator(mode="after")
    def _can_be_told(self) -> "PuzzleTraces":
        for source in self.tasks.sources:
            if source.kind not in (Chain, Numbers):
                raise ValueError(
                    f"tasks: nobody can tell how to solve {source.type_name()}; expected were "
                    f"{ModularChain.type_name()} and {Countdown.type_name()}"
                )
        return self

    def demos(self, seed: int, first: int = 0) -> Iterator[Demo]:
        for n in itertools.count(first):
            rng = stream(seed, "demo", n)
            task = self.tasks.sample(rng, 1)[0]
            yield self.tell(task, rng, self.draw_patience(rng), self.slips * rng.random())

    def words(self) -> list[str]:
        return []

    def tell(self, task: Task, rng: random.Random, patience: float, slip: float) -> Demo:
        """One solver's demonstration of a task of `tasks`."""
        trace = Trace(rng, patience, slip, self.example)
        trace.say(THOUGHT)
        if task.source == ModularChain().source:
            answer = self._chain(Chain.of(task), trace)
        else:
            answer = self._countdown(Numbers.of(task), trace)
        trace.say(f"{MARK} answer {answer}")
        return Demo(task, [""], [" ".join(trace.words)], [trace.weights])

    def _chain(self, chain: Chain, trace: Trace) -> str:
        """Writes the steps of a chain; the value that is answered."""
        value, last = chain.first, len(chain.operations) - 1
        for i, (sign, n) in enumerate(chain.operations):
            result = trace.result(SIGNS[sign](value, n) % chain.modulus, range(chain.modulus))
            trace.say(f"{value} {sign} {n} = {result}")
            value = result
            if i == last or not trace.goes_on(";"):
                break
        return str(value)

    def _countdown(self, puzzle: Numbers, trace: Trace) -> str:
        """Writes attempts at a Countdown; the expression that is answered."""
        expression = ""
        for n in range(self.attempts):
            if trace.rng.random() < self.insight:
                steps, expression = puzzle.solution()
                value = puzzle.target
            else:
                steps, expression, value = attempt(puzzle.numbers, trace)
            trace.say(f"{' ; '.join(steps)} ;")
            if value == puzzle.target:
                trace.say("yes")
                break
            trace.say("no")
            if n + 1 == self.attempts or not trace.goes_on("; again ;"):
                break
        return expression


def attempt(numbers: tuple[int, ...], trace: Trace) -> tuple[list[str], str, int]:
    """An arbitrary way to use all of the numbers: its steps, its expression and the value that it is said to have."""
    pool, steps = [(n, str(n)) for n in numbers], []
    while len(pool) > 1:
        i, j, sign, right = trace.rng.choice([
            (i, j, sign, c)
            for i, j in itertools.permutations(range(len(pool)), 2)
            for sign, c in results(pool[i][0], pool[j][0])
        ])  # fmt: skip
        (a, left), (b, right_of) = pool[i], pool[j]
        c = trace.result(right, range(1, LARGEST + 1))
        steps.append(f"{a} {sign} {b} = {c}")
        left, right_of = (f"( {x} )" if " " in x else x for x in (left, right_of))
        pool = [p for k, p in enumerate(pool) if k not in (i, j)] + [(c, f"{left} {sign} {right_of}")]
    return steps, pool[0][1], pool[0][0]

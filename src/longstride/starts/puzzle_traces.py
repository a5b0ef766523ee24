"""Puzzle traces: a scripted solver that thinks aloud in small steps, slips now and then, and gives up too early.

| puzzle | a trace |
|---|---|
| `ModularChain` | `Thought: 3 + 4 ≡ 7 ; 7 * 2 ≡ 3 Action: answer 3` |
| `Countdown` | `Thought: 5 + 3 = 8 , 4 ; 8 4 want 11 ; 8 - 4 = 4 want 11 no ; again ; ... yes Action: answer ...` |

What a small model compares has to stand side by side: the numbers beside a step's result while more than one is left,
and what is wanted beside the last two and beside what they make. A solver that gives up answers with what it has: the
value so far, or the newest attempt. Asked for a second attempt (`rewards.Attempts`) it repeats its answer or
thinks afresh; shown a summary (`envs.puzzles.Iterated`) it goes on from there: with the next operation of a chain, with
a first move that was not tried, or with another look at the answer that was found.

What always holds: demonstration n is a function of the settings, the seed and n; it is of a training task; a solver
that never gives up and never slips solves every chain, and answers a Countdown rightly exactly where it writes `yes`.
Only the last step of an attempt knows the target (with the probability `insight`); every other one is arbitrary, so
that search is honest.
"""

import itertools
import random
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from longstride.core.numbers import Count, Share
from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.envs.base import Mix
from longstride.envs.puzzles import Countdown, ModularChain, Puzzles
from longstride.envs.puzzles.countdown import Numbers, restated, results, steps_of, value_of
from longstride.envs.puzzles.modular import SIGNS, Chain
from longstride.envs.text import AGAIN, MARK, STEP_END, THOUGHT
from longstride.models.tiny import words_of
from longstride.starts.demonstrators import Demonstration, Demonstrators

FOUND = 0.3
"""Share of summaries of a Countdown that have an answer."""
TRUE = 0.5
"""Share of these answers that are right for certain; others are attempts."""


@dataclass
class Trace:
    """A response as it is written, word by word."""

    rng: random.Random
    patience: float
    """Probability of going on where one could give up."""
    slip: float
    """Probability of an arbitrary result of a step."""
    example: float
    """Weight of the mark of going on, where the solver never gives up."""
    words: list[str] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def write(self, text: str, weight: float = 1.0) -> None:
        """Adds a text."""
        self.words += (words := words_of(text))
        self.weights += [weight] * len(words)

    def goes_on(self, mark: str) -> bool:
        """Whether the solver goes on, which the trace shows by `mark`."""
        if self.rng.random() >= self.patience:
            return False
        self.write(mark, self.example if self.patience == 1 else 1.0)
        return True

    def result(self, right: int, others: range) -> int:
        """A step's result: the right one, or by a slip an arbitrary one of `others`."""
        return self.rng.choice(others) if self.rng.random() < self.slip else right

    def answer(self, answer: str) -> None:
        """Ends the response."""
        self.write(f"{MARK} answer {answer}")

    def add_to(self, demonstration: Demonstration, observation: str) -> None:
        """Adds the response to a demonstration, as that to an observation."""
        demonstration.observations.append(observation)
        demonstration.texts.append(" ".join(self.words))
        demonstration.weights.append(self.weights)


def _solvable(tasks: Puzzles) -> Puzzles:
    for source in tasks.sources:
        if source.kind not in (Chain, Numbers):
            raise ValueError(
                f"there is no solver that thinks aloud for {source.type_name()}; expected {ModularChain.type_name()} "
                f"or {Countdown.type_name()}"
            )
    return tasks


Solvable = Annotated[Puzzles, AfterValidator(_solvable)]
"""Puzzles that are solved aloud."""


class PuzzleTraces(Demonstrators):
    """On single-turn puzzles: what `base-puzzles` is made from. No demonstration is seen twice."""

    tasks: Solvable = Puzzles(
        sources=(
            ModularChain(),
            ModularChain(lengths=(3, 4, 7)),
            ModularChain(lengths=(1, 1, 1)),
            Countdown(largest=10, most=30),
            Countdown(largest=10, most=30, mix=Mix(easy=1, medium=2, hard=3)),
        )
    )
    """What is solved: chains of many lengths, so that steps are counted, and of one step, where a fact is most of the
    text; and Countdown."""
    patience: Share = 0.7
    """Probability that an impatient one goes on after a step of a chain, or after a failed attempt."""
    example: Share = 0.0
    """Weight of the word by which a patient one goes on: 0, so that the model is as patient at the tenth step as at the
    first, and not more so."""
    slips: Share = 0.1
    """Largest probability of an arbitrary result of a step; each episode draws its own below it."""
    insight: Share = 0.5
    """Probability that the last step of an attempt at Countdown makes the target, where one can."""
    attempts: Count = 4
    """Most attempts at Countdown; then the most patient one gives up."""
    second: Share = 0.15
    """Share of episodes with a second attempt."""
    same: Share = 0.2
    """Share of second attempts that say the first answer again."""
    summarised: Share = 0.2
    """Share of episodes that begin with a summary."""

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.second + self.summarised > 1:
            raise ValueError("second and summarised are shares of all episodes: together at most 1")
        return self

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        for n in itertools.count(first):
            rng = stream(seed, "demo", n)
            task = self.tasks.sample(rng, 1)[0]
            kind, patience, slip = rng.random(), self.draw_patience(rng), self.slips * rng.random()
            summary = self.summary(task, rng) if kind < self.summarised else ""
            found = self.solve(task, rng, patience, slip, summary)
            if kind >= 1 - self.second:
                self.add_second_attempt(found, rng, patience, slip)
            yield found

    def words(self) -> list[str]:
        return []

    def summary(self, task: Task, rng: random.Random) -> str:
        """What may be left of earlier thought about a task of `tasks`."""
        if task.source == ModularChain().source:
            chain = Chain.of(task)
            position = rng.randint(1, len(chain.operations))
            left = [f"{sign} {n}" for sign, n in chain.operations[position:]]
            return " ; ".join([f"now {chain.values()[position]}", *left])
        puzzle = Numbers.of(task)
        moves = first_moves(puzzle)
        if rng.random() < FOUND:
            by_chance = attempt(puzzle, Trace(rng, 1, 0, 1), self.insight)[1]
            return f"found {puzzle.solution()[1] if rng.random() < TRUE else by_chance}"
        return f"tried {' ; '.join(rng.sample(moves, rng.randint(1, len(moves))))}"

    def solve(self, task: Task, rng: random.Random, patience: float, slip: float, summary: str = "") -> Demonstration:
        """One solver's demonstration of a task of `tasks`, from a summary on."""
        found = Demonstration(task)
        self._think(task, Trace(rng, patience, slip, self.example), summary).add_to(found, summary)
        return found

    def add_second_attempt(self, first: Demonstration, rng: random.Random, patience: float, slip: float) -> None:
        """Adds a second attempt to a demonstration: the same answer, or one that is thought out afresh."""
        trace = Trace(rng, patience, slip, self.example)
        if rng.random() < self.same:
            trace.write(first.texts[0][first.texts[0].index(MARK) :])
        else:
            self._think(first.task, trace, "")
        trace.add_to(first, AGAIN)

    def _think(self, task: Task, trace: Trace, summary: str) -> Trace:
        """Writes a response."""
        if task.source == ModularChain().source:
            self._chain(Chain.of(task), trace, summary)
        else:
            self._countdown(Numbers.of(task), trace, summary)
        return trace

    def _chain(self, chain: Chain, trace: Trace, summary: str) -> None:
        """Writes the steps of a chain that are left, and answers with the value so far."""
        now, *left = summary.split(" ; ") if summary else (f"now {chain.first}", *chain.operations)
        begun, value = len(chain.operations) - len(left), int(now.removeprefix("now "))
        if begun < len(chain.operations):
            trace.write(THOUGHT)
        last = len(chain.operations) - 1
        for i, (sign, n) in enumerate(chain.operations[begun:], begun):
            result = trace.result(SIGNS[sign](value, n) % chain.modulus, range(chain.modulus))
            trace.write(f"{value} {sign} {n} ≡ {result}")
            value = result
            if i == last or not trace.goes_on(STEP_END):
                break
        trace.answer(str(value))

    def _countdown(self, puzzle: Numbers, trace: Trace, summary: str) -> None:
        """Writes attempts at a Countdown, the first of which looks at what was found, and answers with the newest."""
        found = summary.removeprefix("found ") if summary.startswith("found ") else ""
        avoided = set(summary.removeprefix("tried ").split(" ; "))
        trace.write(THOUGHT)
        expression = ""
        for n in range(self.attempts):
            if found and n == 0:
                expression, value = found, value_of(found, puzzle.numbers)
                steps = restated(puzzle.numbers, steps_of(found), puzzle.target)
            else:
                steps, expression, value = attempt(puzzle, trace, self.insight, avoided)
            trace.write(" ; ".join(steps))
            if value == puzzle.target:
                trace.write("yes")
                break
            trace.write("no")
            if n + 1 == self.attempts or not trace.goes_on("; again ;"):
                break
        trace.answer(expression)


def attempt(puzzle: Numbers, trace: Trace, insight: float, avoided: Container[str] = ()) -> tuple[list[str], str, int]:
    """A way to use all of the numbers of a Countdown, of which only the last step may know the target (with the
    probability `insight`), and the first avoids what it can of `avoided`: its steps, its expression and the value that
    its steps give."""
    pool, steps = [(n, str(n)) for n in puzzle.numbers], []
    while len(pool) > 1:
        if len(pool) == 2:
            larger, smaller = sorted((n for n, _ in pool), reverse=True)
            steps.append(f"{larger} {smaller} want {puzzle.target}")
        moves = [
            (i, j, sign, c)
            for i, j in itertools.permutations(range(len(pool)), 2)
            for sign, c in results(pool[i][0], pool[j][0], puzzle.most)
        ]
        if len(pool) == len(puzzle.numbers):
            moves = [m for m in moves if f"{pool[m[0]][0]} {m[2]} {pool[m[1]][0]}" not in avoided] or moves
        if len(pool) == 2 and trace.rng.random() < insight:
            moves = [m for m in moves if m[3] == puzzle.target] or moves
        i, j, sign, right = trace.rng.choice(moves)
        (a, left), (b, right_of) = pool[i], pool[j]
        c = trace.result(right, range(1, puzzle.most + 1))
        pool = [p for k, p in enumerate(pool) if k not in (i, j)]
        beside = " ".join(str(n) for n, _ in pool)
        steps.append(f"{a} {sign} {b} = {c} " + (f", {beside}" if beside else f"want {puzzle.target}"))
        left, right_of = (f"( {x} )" if " " in x else x for x in (left, right_of))
        pool.append((c, f"{left} {sign} {right_of}"))
    return steps, pool[0][1], pool[0][0]


def first_moves(puzzle: Numbers) -> list[str]:
    """All distinct first moves of a Countdown, as a summary tells them."""
    pairs = itertools.permutations(puzzle.numbers, 2)
    return list(dict.fromkeys(f"{a} {sign} {b}" for a, b in pairs for sign, _ in results(a, b, puzzle.most)))

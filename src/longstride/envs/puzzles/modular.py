"""Modular chains: a running value, one operation after another, modulo a small number.

`start 3 ; + 4 ; * 2 ; - 5 ; mod 7` is answered by `answer 2`. The chain is written step by step, not as one nested
expression, so that step i of a solution needs the i-th part of the goal and the value before it and nothing else; each
step is one of few facts, written with the sign of congruence (`3 + 4 ≡ 0`), for it is none of the facts of ordinary
numbers that other puzzles rest on. What always holds: operations are done in their written order, each followed by
the modulo; every written step of a response can be labelled right or wrong without a model (`Chain.step_labels`).
"""

import random
import re
from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from longstride.core.task import Difficulty
from longstride.envs.puzzles.base import SOLVED, Game, OneAnswer, Puzzle, PuzzleSource, answered, at, short
from longstride.envs.text import STEP_END, said, thought_of

Sign = Literal["+", "-", "*"]
SIGNS: dict[Sign, Callable[[int, int], int]] = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}
STEP = re.compile(r"\s*([0-9]{1,2})\s*([-+*])\s*([0-9]{1,2})\s*[=≡]\s*([0-9]{1,2})\s*")
"""A written step: value, operation, operand, result. Whoever writes `=` for `≡` is understood."""

Residue = Annotated[int, Field(ge=0, le=98)]
Modulus = Annotated[int, Field(ge=2, le=99)]
Length = Annotated[int, Field(ge=1, le=64)]


class Chain(Puzzle):
    """A first value, operations, and the modulus."""

    first: Residue
    operations: tuple[tuple[Sign, Residue], ...] = Field(min_length=1, max_length=64)
    modulus: Modulus

    @property
    def goal(self) -> str:
        return " ; ".join([f"start {self.first}", *(f"{s} {n}" for s, n in self.operations), f"mod {self.modulus}"])

    @property
    def key(self) -> str:
        return self.goal

    def start(self) -> Game:
        return OneAnswer(self.check)

    def values(self) -> list[int]:
        """The running value: at the start and after each operation."""
        values = [self.first]
        for sign, n in self.operations:
            values.append(SIGNS[sign](values[-1], n) % self.modulus)
        return values

    def check(self, answer: str) -> str:
        """The verdict of an answer."""
        value = self.values()[-1]
        return SOLVED if answer.split() == [str(value)] else f"the value is {value} , not {short(answer)}"

    def step_labels(self, text: str) -> list[bool]:
        """A label for each step that a response writes in its thought, where steps are divided by `;`.

        Step i is right if it applies the i-th operation to the value that was written before it (the first value, for
        the first step) and gets the right result. So the first wrong step is the first error, and a step behind it
        that goes on correctly from the wrong value is right: process rewards need both.
        """
        labels: list[bool] = []
        before = str(self.first)
        written = [part for part in thought_of(text).split(STEP_END) if part.strip()]
        for i, part in enumerate(written):
            step = STEP.fullmatch(part)
            labels.append(step is not None and i < len(self.operations) and self._follows(i, before, *step.groups()))
            before = step[4] if step else ""
        return labels

    def review(self, text: str) -> list[str]:
        """What a judge writes who goes through a response (see `Puzzle.review`): `2 0 * 2 ≡ 0 is 3 no` says that the
        second step has 3 where 0 is right, `3 0 - 5 ≡ 2 is answer no` that the third was left out."""
        values, written = self.values(), [part for part in thought_of(text).split(STEP_END) if part.strip()]
        lines: list[str] = []
        labels = self.step_labels(text) + [False] * len(values)
        for i, (step, right) in enumerate(zip(self.steps(), labels, strict=False)):
            found = STEP.fullmatch(written[i]) if i < len(written) else None
            follows = found is not None and (found[1], found[2], found[3]) == tuple(step.split()[:3])
            there = found[4] if found and follows else "other" if i < len(written) else "answer"
            lines.append(f"{i + 1} {step} is {there} {'yes' if right else 'no'}")
            if not right:
                return lines
        answer = said(text).removeprefix("answer").strip()
        shown = answer if re.fullmatch("[0-9]{1,2}", answer) else "other"
        verdict = "yes" if self.check(answer) == SOLVED else "no"
        return [*lines, f"{len(lines) + 1} answer {values[-1]} is {shown} {verdict}"]

    def complaint(self, text: str) -> str:
        """The first wrong step as it was written, or the answer: `3 + 4 ≡ 1 no`, `answer 2 no`."""
        written = [part.strip() for part in thought_of(text).split(STEP_END) if part.strip()]
        right = self._right(text)
        return f"{written[right] if right < len(written) else said(text)} no"

    def rest(self, text: str) -> "Chain | None":
        """The chain from behind its right steps on."""
        right = self._right(text)
        if not 0 < right < len(self.operations):
            return None
        return Chain(first=self.values()[right], operations=self.operations[right:], modulus=self.modulus)

    def _right(self, text: str) -> int:
        """How many steps are right before the first wrong one."""
        return [*self.step_labels(text), False].index(False)

    def _follows(self, i: int, before: str, a: str, sign: str, n: str, value: str) -> bool:
        wanted, operand = self.operations[i]
        right = SIGNS[wanted](int(a), operand) % self.modulus
        return (a, sign, n, value) == (before, wanted, str(operand), str(right))

    def steps(self) -> list[str]:
        values = self.values()
        return [f"{values[i]} {s} {n} ≡ {values[i + 1]}" for i, (s, n) in enumerate(self.operations)]

    def demonstration(self) -> list[str]:
        return [answered(self.steps(), str(self.values()[-1]))]


class ModularChain(PuzzleSource):
    """Modular chains, single-turn."""

    kind: ClassVar[type[Puzzle]] = Chain
    lengths: tuple[Length, Length, Length] = (2, 5, 10)
    """Operations in easy, medium and hard tasks."""
    modulus: Annotated[int, Field(ge=3, le=99)] = 7
    """Values are residues of this number."""

    def make(self, rng: random.Random, difficulty: Difficulty) -> Chain:
        signs: list[Sign] = list(SIGNS)
        # an operand of 0 would make a step that forgets all before it, or does nothing
        operations: tuple[tuple[Sign, int], ...] = tuple(
            (rng.choice(signs), rng.randrange(1, self.modulus)) for _ in range(at(self.lengths, difficulty))
        )
        return Chain(first=rng.randrange(self.modulus), operations=operations, modulus=self.modulus)

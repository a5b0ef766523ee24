"""Countdown: make a target from a few numbers with + - * and /, each number at most once.

`make 14 from 3 4 2` is answered by `answer ( 3 + 4 ) * 2`. What always holds: an answer is checked over exact
fractions by a parser that knows numbers, four operators and brackets, runs in linear time and executes nothing; a
generated target needs all of the numbers if every value on the way is a whole number from 1 to `most`. The verifier
accepts any other way there as well.
"""

import functools
import itertools
import operator
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from longstride.core.errors import TaskError
from longstride.core.task import Difficulty
from longstride.envs.puzzles.base import SOLVED, TRIES, Game, OneAnswer, Puzzle, PuzzleSource, answered, at, short, yes
from longstride.envs.text import lines_in, said

LARGEST = 99
"""Numbers up to here are tokens of their own in every vocabulary."""
OPERATORS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_TOKEN = re.compile(r"[0-9]+|\S")
_N = "([0-9]{1,4})"
_STEP = re.compile(f"{_N} ([-+*/]) {_N} = {_N}(?: ,((?: [0-9]{{1,4}})+)| want {_N}(?: (yes|no))?)?")
_PAIR = re.compile(f"{_N} {_N} want {_N}")
_AGAIN = re.compile("again((?: [0-9]{1,4})*)")
_INNER = re.compile(r"\( ([0-9]+) ([-+*/]) ([0-9]+) \)")

Number = Annotated[int, Field(ge=1, le=LARGEST)]
Count = Annotated[int, Field(ge=2, le=5)]
Way = tuple[int, str, int] | None
"""How a value is made: left value, operator, right value; None for a number that is given."""


def value_of(expression: str, numbers: Sequence[int]) -> Fraction | str:
    """The exact value of an expression that uses each of the numbers at most once, or what is wrong with it, in words.

    Dijkstra's shunting-yard algorithm: no recursion, so that brackets may nest as deeply as they like.
    """
    left = Counter(map(str, numbers))
    values: list[Fraction] = []
    waiting: list[str] = []

    def reduce() -> str | None:
        b, a, sign = values.pop(), values.pop(), waiting.pop()
        if sign == "/" and not b:
            return "it divides by 0"
        values.append(OPERATORS[sign](a, b))

    operand = True
    for token in _TOKEN.findall(expression):
        if operand and token == "(":
            waiting.append(token)
        elif operand:
            if not left[token]:
                return f"{short(token)!r} is no number that is left"
            left[token] -= 1
            values.append(Fraction(int(token)))
            operand = False
        elif token in OPERATORS:
            while waiting and waiting[-1] != "(" and not (waiting[-1] in "+-" and token in "*/"):
                if wrong := reduce():
                    return wrong
            waiting.append(token)
            operand = True
        elif token == ")":
            while waiting and waiting[-1] != "(":
                if wrong := reduce():
                    return wrong
            if not waiting:
                return "a bracket is closed that was not opened"
            waiting.pop()
        else:
            return f"{short(token)!r} is no operator"
    if operand:
        return "it ends where a number is expected"
    while waiting:
        if waiting[-1] == "(":
            return "a bracket is not closed"
        if wrong := reduce():
            return wrong
    return values[0]


@functools.lru_cache(64)  # a task asks for the same numbers several times, a group for the same task
def reachable(numbers: tuple[int, ...], most: int) -> list[dict[int, tuple[int, Way]]]:
    """By subset of the numbers (a bit mask), each value that all numbers of the subset make together, and how: the
    subset of the left part and the `Way`. All values on the way are whole numbers from 1 to `most`."""
    tables: list[dict[int, tuple[int, Way]]] = [{} for _ in range(1 << len(numbers))]
    for i, number in enumerate(numbers):
        tables[1 << i][number] = (0, None)
    for mask in range(1, len(tables)):
        part = (mask - 1) & mask
        while part:
            for a, b in itertools.product(tables[part], tables[mask ^ part]):
                for sign, c in results(a, b, most):
                    tables[mask].setdefault(c, (part, (a, sign, b)))
            part = (part - 1) & mask
    return tables


def results(a: int, b: int, most: int) -> list[tuple[str, int]]:
    """What two values can become, by operator: the whole numbers from 1 to `most`. Nothing where the second is larger,
    for the other order makes the same."""
    if a < b:
        return []
    found = [("+", a + b), ("*", a * b), ("-", a - b)]
    if a % b == 0:
        found.append(("/", a // b))
    return [(sign, c) for sign, c in found if 1 <= c <= most]


class Numbers(Puzzle):
    """Numbers and a target."""

    numbers: tuple[Number, ...] = Field(min_length=1, max_length=6)
    target: Number
    most: Number = LARGEST
    """Largest value on the way of a solution that is shown."""

    @property
    def goal(self) -> str:
        return f"make {self.target} from {' '.join(map(str, self.numbers))}"

    @property
    def key(self) -> str:
        return f"{self.target} from {sorted(self.numbers)}"

    def start(self) -> Game:
        return OneAnswer(self.check)

    def check(self, answer: str) -> str:
        """The verdict of an answer."""
        value = value_of(answer, self.numbers)
        if isinstance(value, str):
            return value
        return SOLVED if value == self.target else f"{short(answer)} is {value} , not {self.target}"

    def solution(self) -> tuple[list[str], str]:
        """The steps (`3 + 4 = 7`) and the expression of a way that uses fewest numbers; no steps and no expression
        where no whole numbers from 1 to `most` lead there."""
        tables = reachable(self.numbers, self.most)
        masks = [m for m, table in enumerate(tables) if self.target in table]
        return _written(tables, min(masks, key=int.bit_count), self.target) if masks else ([], "")

    def steps(self) -> list[str]:
        return self.solution()[0]

    def review(self, text: str) -> list[str] | None:
        """What a judge writes who goes through a response (see `Puzzle.review`): `3 18 + 9 = 27 is 26 no`.

        A step is right if its numbers are left in its attempt, and its result and what stands beside it (`, 8 5`, or
        `want 29 no`, which takes it back) are true; `8 3 want 29` if these are what is left and that is wanted; `again`
        goes back to the numbers that are given, `again 8 5` to some that were left before. So a step that leads nowhere
        is right. None where a thought has other lines.
        """
        left = given = tuple(sorted(self.numbers))
        before, lines = {given}, list[str]()
        for number, line in enumerate(lines_in(text), 1):
            if found := _STEP.fullmatch(line):
                told, left, right = self._step(left, *found.groups())
            elif found := _PAIR.fullmatch(line):
                told, right = f"{found[1]} {found[2]} want {self.target} is {found[3]}", found[3] == str(self.target)
                right = right and _sorted(f"{found[1]} {found[2]}") == left
            elif found := _AGAIN.fullmatch(line):
                told, left = line, _sorted(found[1]) or given
                right = left in before
            else:
                return None
            lines.append(f"{number} {told} {yes(right)}")
            if not right:
                return lines
            before.add(left)
        verb, _, answer = said(text).partition(" ")
        value = value_of(answer, self.numbers) if verb == "answer" else "no answer"
        shown = "other" if isinstance(value, str) else value
        return [*lines, f"{len(lines) + 1} answer {self.target} is {shown} {yes(value == self.target)}"]

    def _step(
        self,
        left: Sequence[int],
        a: str,
        sign: str,
        b: str,
        c: str,
        beside: str | None,
        want: str | None,
        is_it: str | None,
    ) -> tuple[str, tuple[int, ...], bool]:
        """What a judge writes of a step, the numbers that are left then, and whether it is right. Of one that is not
        right but for its result it says `other`."""
        others = Counter(left)
        others.subtract((int(a), int(b)))
        rest = tuple(sorted(others.elements()))
        value = "other" if sign == "/" and int(b) == 0 else OPERATORS[sign](Fraction(a), Fraction(b))
        told = min(others.values()) >= 0 and (beside is None or _sorted(beside) == rest)
        told = told and want in (None, str(self.target)) and is_it in (None, yes(c == str(self.target)))
        text = f"{a} {sign} {b} = {value} is {c if told else 'other'}"
        after = tuple(left) if is_it == "no" else tuple(sorted((*rest, int(c))))
        return text, after, told and value == int(c)

    def demonstration(self) -> list[str]:
        steps, expression = self.solution()
        return [answered(restated(self.numbers, steps, self.target), expression)]


def _sorted(numbers: str) -> tuple[int, ...]:
    return tuple(sorted(map(int, numbers.split())))


def steps_of(expression: str) -> list[str]:
    """The steps (`3 + 4 = 7`) of an expression that has all its brackets, as `Numbers.solution` writes it."""
    steps, left = [], f"( {expression} )"
    while inner := _INNER.search(left):
        a, sign, b = inner.groups()
        value = OPERATORS[sign](Fraction(a), Fraction(b))
        steps.append(f"{a} {sign} {b} = {value}")
        left = f"{left[: inner.start()]}{value}{left[inner.end() :]}"
    return steps


def restated(numbers: Sequence[int], steps: Sequence[str], target: int) -> list[str]:
    """Steps as one writes them who compares what stands side by side: with the numbers beside a result, and with what
    is wanted beside the numbers of the last step and beside what they make."""
    left, written = list(numbers), []
    for n, step in enumerate(steps, 1):
        a, _, b, _, c = step.split()
        last = n == len(steps)
        if last:
            written.append(f"{a} {b} want {target}")
        left.remove(int(a))
        left.remove(int(b))
        written.append(f"{step} , {' '.join(map(str, left))}" if not last else f"{step} want {target}")
        left.append(int(c))
    return written


def _written(tables: list[dict[int, tuple[int, Way]]], mask: int, value: int) -> tuple[list[str], str]:
    part, way = tables[mask][value]
    if way is None:
        return [], str(value)
    a, sign, b = way
    (first, left), (second, right) = _written(tables, part, a), _written(tables, mask ^ part, b)
    left, right = (f"( {x} )" if steps else x for steps, x in ((first, left), (second, right)))
    return [*first, *second, f"{a} {sign} {b} = {value}"], f"{left} {sign} {right}"


class Countdown(PuzzleSource):
    """Countdown, single-turn."""

    kind: ClassVar[type[Puzzle]] = Numbers
    numbers: tuple[Count, Count, Count] = (2, 3, 4)
    """How many numbers are given in easy, medium and hard tasks; one less is the length of the solution."""
    largest: Annotated[int, Field(ge=2, le=LARGEST)] = 20
    """Numbers are drawn from 1 to this."""
    most: Annotated[int, Field(ge=2, le=LARGEST)] = LARGEST
    """Targets, and all values on the way to them, go up to this."""

    @model_validator(mode="after")
    def _grows(self) -> "Countdown":
        if list(self.numbers) != sorted(self.numbers):
            raise ValueError("harder tasks must have as many numbers or more")
        return self

    def make(self, rng: random.Random, difficulty: Difficulty) -> Numbers:
        count = at(self.numbers, difficulty)
        for _ in range(TRIES):
            numbers = tuple(rng.randint(1, self.largest) for _ in range(count))
            *fewer, all_of_them = reachable(numbers, self.most)
            targets = sorted(set(all_of_them).difference(*fewer))
            if targets:
                return Numbers(numbers=numbers, target=rng.choice(targets), most=self.most)
        raise TaskError(
            f"countdown: among {TRIES} draws of {count} numbers up to {self.largest} none makes a target up to "
            f"{self.most} that needs all of them; set tasks.largest or tasks.most higher, or tasks.numbers lower"
        )

"""Traces of Countdown that show chosen behaviours, in right or in wrong solutions: what a model is primed with.

| behaviour | in a trace |
|---|---|
| backward chaining | `want 21 - 5 = 16 , 8 2`: the last operation is undone first, and what is left is the target |
| subgoals | `8 2 want 16`: what the last two numbers have to make stands beside them |
| verification | `8 * 2 = 16 want 16 yes`: what came out is held against the target |
| backtracking | `; again ;`: an attempt that failed is followed by another one |

The four are those of Gandhi et al., arXiv 2503.01307. What always holds: demonstration n is a function of the settings,
the seed and n; it is of a training task; its arithmetic is right, whatever its answer is. Only the last step of an
attempt knows the target (with the probability `insight`). No torch.
"""

import itertools
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Literal

from longstride.core.numbers import Count, Share
from longstride.core.seeds import stream
from longstride.envs.puzzles.base import answered
from longstride.envs.puzzles.countdown import OPERATORS, Countdown, Numbers, results
from longstride.starts.demonstrators import Demonstration, Demonstrators

Behaviour = Literal["verification", "backtracking", "subgoals", "backward_chaining"]
FILLER = ";"
"""What a thought is made of that says nothing: a word that models of puzzles know."""
TASKS = Countdown(numbers=(3, 3, 3), largest=10, most=30)
"""Of three numbers."""
UNDONE = {"+": "-", "-": "+", "*": "/", "/": "*"}
"""The operator that undoes another."""


class PuzzleBehaviours(Demonstrators):
    """On Countdown. No demonstration is seen twice, but for tasks that are drawn again."""

    tasks: Countdown = TASKS
    """What is solved."""
    behaviours: tuple[Behaviour, ...] = ("verification", "backtracking", "subgoals", "backward_chaining")
    """What a thought shows; one with none of them is a single attempt."""
    thought: Literal["spoken", "filler", "empty"] = "spoken"
    """`filler`: as many words, which say nothing; `empty`: none."""
    answers: Literal["right", "wrong"] = "right"
    """Which solutions are shown."""
    attempts: Count = 4
    """Most attempts, where one backtracks; an episode draws how many it takes at most."""
    insight: Share = 0.5
    """Probability that the last step of an attempt makes the target, where one can."""

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        for n in itertools.count(first):
            rng, right = stream(seed, "demo", n), self.answers == "right"
            while True:
                task = self.tasks.sample(rng, 1)[0]
                lines, expression, solved = self.solve(Numbers.of(task), rng)
                if solved == right:
                    break
            words = sum(len(line.split()) for line in lines) + len(lines) - 1
            lines = {"spoken": lines, "filler": [" ".join([FILLER] * words)], "empty": []}[self.thought]
            yield Demonstration(task, [""], [answered(lines, expression)], [1.0])

    def words(self) -> list[str]:
        return []

    def solve(self, puzzle: Numbers, rng: random.Random) -> tuple[list[str], str, bool]:
        """A thought's lines, the expression that it comes to, and whether that is right."""
        lines: list[str] = []
        most = rng.randint(1, self.attempts) if "backtracking" in self.behaviours else 1
        for _ in range(most):
            steps, expression, made, wanted = self._attempt(puzzle, rng)
            if "verification" in self.behaviours:
                steps[-1] += f" want {wanted} {'yes' if made == wanted else 'no'}"
            lines += [*(["again"] if lines else []), *steps]
            if made == wanted:
                return lines, expression, True
        return lines, expression, False

    def _attempt(self, puzzle: Numbers, rng: random.Random) -> tuple[list[str], str, int, int]:
        """The steps of a way to use all of the numbers, its expression, what comes out and what has to."""
        pool, target, form, lines = [(n, str(n)) for n in puzzle.numbers], puzzle.target, "{}", list[str]()
        ways: list[tuple[int, str, int]] = []
        if "backward_chaining" in self.behaviours and len(pool) > 2:
            ways += [(k, *way) for k in range(len(pool)) for way in undone(target, pool[k][0], puzzle)]
        if ways:  # of small numbers none may be left
            k, sign, before = rng.choice(ways)
            n, _ = pool.pop(k)
            lines.append(f"want {target} {UNDONE[sign]} {n} = {before} , {' '.join(name for _, name in pool)}")
            target, form = before, f"( {{}} ) {sign} {n}"
        while len(pool) > 1:
            moves = [
                (i, j, sign, c)
                for i, j in itertools.permutations(range(len(pool)), 2)
                for sign, c in results(pool[i][0], pool[j][0], puzzle.most)
            ]
            if len(pool) == 2:
                if "subgoals" in self.behaviours:
                    lines.append(f"{' '.join(str(n) for n, _ in sorted(pool, reverse=True))} want {target}")
                if rng.random() < self.insight:
                    moves = [move for move in moves if move[3] == target] or moves
            i, j, sign, c = rng.choice(moves)
            (a, left), (b, right) = pool[i], pool[j]
            pool = [p for k, p in enumerate(pool) if k not in (i, j)]
            lines.append(f"{a} {sign} {b} = {c}" + (f" , {' '.join(str(n) for n, _ in pool)}" if pool else ""))
            left, right = (f"( {x} )" if " " in x else x for x in (left, right))
            pool.append((c, f"{left} {sign} {right}"))
        return lines, form.format(pool[0][1]), pool[0][0], target


def undone(target: int, n: int, puzzle: Numbers) -> list[tuple[str, int]]:
    """The last operations with `n` that make the target of a whole number from 1 to `most`, each with that number."""
    before = [(sign, OPERATORS[UNDONE[sign]](Fraction(target), Fraction(n))) for sign in OPERATORS]
    return [(sign, int(b)) for sign, b in before if b == int(b) and 1 <= b <= puzzle.most]

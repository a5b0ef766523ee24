"""Puzzle thoughts: a scripted solver that can be asked for its answer after any word, made to think on, and then looks
again at what it has found.

| puzzle | what is answered | after it is found |
|---|---|---|
| `ModularChain` | the value so far | all steps again, with `yes` where they come to a value from before |
| `Countdown` | the attempt under way, or the one that is right | its steps again, up to one that is not right: `no` |

What always holds: demonstration n is a function of the settings, the seed and n; it is of a training task. What was
done by force is read and not imitated: the `Action:` that cuts a thought, and the `Thought:` by which it goes on. So
what is learned is to answer at once when asked for it and to go on when made to, and the thoughts that nobody touches
keep the length that their patience gives them. (Budget forcing does both: arXiv 2501.19393, section 3.)
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from longstride.core.numbers import Count, Share
from longstride.core.seeds import stream
from longstride.envs.base import Mix
from longstride.envs.puzzles import Countdown, ModularChain, Puzzles
from longstride.envs.puzzles.countdown import OPERATORS, Numbers
from longstride.envs.puzzles.modular import SIGNS, Chain
from longstride.envs.text import MARK, STEP_END, THOUGHT
from longstride.models.tiny import words_of
from longstride.starts.demonstrators import Demonstration, Demonstrators
from longstride.starts.puzzle_traces import Solvable, Trace, attempt

HARDER = Mix(easy=1, medium=2, hard=3)


@dataclass
class CutTrace(Trace):
    """A response whose thought ends by force where it has no room."""

    room: int = 0
    """Words of the longest thought."""
    told: float = 0.0
    """Probability that one who never gives up goes on because it is made to."""
    cut: bool = False
    """Whether something had no room."""

    def write(self, text: str, weight: float = 1.0) -> None:
        words, left = words_of(text), self.room - len(self.words)
        self.cut |= len(words) > left
        super().write(" ".join(words[:left]), weight)

    def goes_on(self, mark: str) -> bool:
        """As a `Trace`; of the mark only the first word says that it goes on, and the others are imitated."""
        told = self.patience == 1 and self.rng.random() < self.told
        decision, *others = [THOUGHT] if told else words_of(mark)
        if not super().goes_on(decision):
            return False
        self.write(" ".join(others))
        return not self.cut

    def answer(self, answer: str) -> None:
        super().write(MARK, 0.0 if self.cut else 1.0)
        super().write(f"answer {answer}")


class PuzzleThoughts(Demonstrators):
    """On single-turn puzzles, thoughts of any length: what `base-thoughts` is made from. No demonstration is seen
    twice."""

    tasks: Solvable = Puzzles(
        sources=(
            ModularChain(),
            ModularChain(lengths=(3, 4, 7), mix=HARDER),
            Countdown(largest=10, most=30),
            Countdown(largest=10, most=30, mix=HARDER),
        )
    )
    """What is solved: chains of many lengths, so that steps are counted, and Countdown."""
    patience: Share = 0.7
    """Probability that an impatient one goes on after a step of a chain, a failed attempt, or another look."""
    slips: Share = 0.1
    """Largest probability of an arbitrary result of a step; each episode draws its own below it."""
    insight: Share = 0.5
    """Probability that the last step of an attempt at Countdown makes the target, where one can."""
    most: Count = 128
    """Words of the longest thought."""
    cut: Share = 0.5
    """Share of thoughts that have fewer: a number whose logarithm is uniform."""
    told: Share = 0.5
    """Share of the places where a patient one goes on by `Thought:` in place of its own words."""

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        for n in itertools.count(first):
            rng = stream(seed, "demo", n)
            found = Demonstration(self.tasks.sample(rng, 1)[0])
            patience, slip = self.draw_patience(rng), self.slips * rng.random()
            room = int(self.most ** rng.random()) if rng.random() < self.cut else self.most
            self.think(found, CutTrace(rng, patience, slip, 0.0, room=room, told=self.told))
            yield found

    def words(self) -> list[str]:
        return []

    def think(self, found: Demonstration, trace: CutTrace) -> None:
        """Adds the response to the task of a demonstration."""
        is_chain = found.task.source == ModularChain().source
        trace.write(THOUGHT)
        answer = (
            self._chain(Chain.of(found.task), trace) if is_chain else self._countdown(Numbers.of(found.task), trace)
        )
        trace.answer(answer)
        trace.add_to(found, "")

    def _chain(self, chain: Chain, trace: CutTrace) -> str:
        """Writes the steps of a chain, again and again, and gives the value that came most often, the newest of these;
        before there is one, the value so far."""
        passes: list[int] = []
        answer = chain.first
        while not trace.cut:
            value = chain.first
            for i, (sign, n) in enumerate(chain.operations):
                if i and passes:
                    trace.write(STEP_END)
                elif i and not trace.goes_on(STEP_END):
                    return str(answer)
                result = trace.result(SIGNS[sign](value, n) % chain.modulus, range(chain.modulus))
                trace.write(f"{value} {sign} {n} ≡ {result}")
                if trace.cut:
                    return str(answer)
                value = result
                if not passes:
                    answer = value
            if passes:
                trace.write("yes" if value in passes else "no")
            passes.insert(0, value)
            answer = max(passes, key=passes.count)
            if not trace.goes_on("; again ;"):
                break
        return str(answer)

    def _countdown(self, puzzle: Numbers, trace: CutTrace) -> str:
        """Writes attempts at a Countdown until one is right, and then looks at that one again, and again; gives the
        attempt that was under way last, or is right."""
        answer, steps, is_right = "", list[str](), False
        while not trace.cut:
            if is_right:
                looked_at, is_right = look_again(steps)
            else:
                steps, answer, value = attempt(puzzle, trace, self.insight)
                looked_at, is_right = steps, value == puzzle.target
            trace.write(f"{' ; '.join(looked_at)} {'yes' if is_right else 'no'}")
            if not trace.goes_on("; again ;"):
                break
        return answer


def look_again(steps: list[str]) -> tuple[list[str], bool]:
    """The steps of an attempt as they are once more, and whether all are right; the first that is not right ends them,
    with its right result."""
    for k, step in enumerate(steps):
        expression, is_result, result = step.partition(" = ")
        a, sign, b, *_ = expression.split()
        if is_result and (right := OPERATORS[sign](Fraction(a), Fraction(b))) != int(result.split()[0]):
            return [*steps[:k], f"{a} {sign} {b} = {right}"], False
    return steps, True

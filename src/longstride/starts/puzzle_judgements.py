"""Puzzle judgements: a scripted judge that goes through solutions of chains line by line, and stops too early.

| asked | a judgement |
|---|---|
| is it right | `1 3 + 4 ≡ 0 is 0 yes ; 2 0 * 2 ≡ 0 is 3 no Verdict: no` |
| which line is wrong | the same lines, `Verdict: 2` |
| which of two is better | `first`, the lines of the first one, `Verdict: second` |
| a verdict at once | `Verdict: no` |

A line says what is right there, `is`, what the solution has (a result, `other`, or `answer` where the step was left
out), and whether that is the same. A judge that stops early has seen nothing wrong, and says so: `yes`, `none`,
`first`. So it believes what ends badly, and of two the first. Solutions are those of the scripted solver of
`starts.puzzle_traces`, with more slips.

What always holds: demonstration n is a function of the settings, the seed and n; its chain is a training task; a judge
that never stops early and is asked for reasons is right, but for solutions that are right by luck.
"""

import itertools
import random
from collections.abc import Iterator
from typing import Literal

from longstride.core.numbers import Share
from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.envs.judgements import Judgements, LabelledSolution
from longstride.envs.puzzles import ModularChain, Puzzles
from longstride.envs.puzzles.modular import Chain
from longstride.envs.questions import VERDICT
from longstride.envs.text import STEP_END
from longstride.models.tiny import words_of
from longstride.starts.demonstrators import Demonstration, Demonstrators
from longstride.starts.puzzle_traces import PuzzleTraces

DRAWS = 20
"""Solutions of a chain that are written for one with the label that is wanted, before any other will do."""


class PuzzleJudgements(Demonstrators):
    """On solutions of modular chains: what `base-judge` is made from. No demonstration is seen twice."""

    tasks: Puzzles = Puzzles(sources=(ModularChain(), ModularChain(lengths=(1, 3, 4)), ModularChain(lengths=(3, 5, 8))))
    """Chains of many lengths, so that lines are counted."""
    patience: Share = 0.85
    """Probability that an impatient judge goes on after a line that is right."""
    example: Share = 0.0
    """Weight of the word by which a patient one goes on (see `PuzzleTraces.example`)."""
    slips: Share = 0.2
    """Largest probability of an arbitrary result of a step of a solution."""
    line: Share = 0.1
    """Share of questions which line is wrong."""
    better: Share = 0.2
    """Share of questions which of two is better."""
    at_once: Share = 0.2
    """Share of questions that ask for a verdict without reasons."""
    filler: Share = 0.1
    """Share of questions whose solutions begin with a filler or not, whatever their label."""

    def demonstrations(self, seed: int, first: int = 0) -> Iterator[Demonstration]:
        for n in itertools.count(first):
            rng = stream(seed, "demo", n)
            kind = rng.random()
            asks = "line" if kind < self.line else "better" if kind < self.line + self.better else "right"
            yield self.judge(self.question(rng, asks), rng, self.draw_patience(rng))

    def words(self) -> list[str]:
        return []

    def question(self, rng: random.Random, asks: Literal["right", "line", "better"]) -> Task:
        """A question about solutions of a new chain."""
        chain = self.tasks.sample(rng, 1)[0]
        wanted = (True, False) if asks == "better" else (rng.random() < 0.5,)
        about = [self.solution(chain, rng, right) for right in wanted]
        source = Judgements(
            asks=asks,
            reasons=asks == "line" or rng.random() >= self.at_once,
            artefact=1e-9 if rng.random() < self.filler else 0.0,
        )
        return source.question(about, rng, "train")

    def solution(self, task: Task, rng: random.Random, right: bool) -> LabelledSolution:
        """One that the scripted solver wrote, with this label if it is not too rare."""
        solver, chain = PuzzleTraces(), Chain.of(task)
        for _ in range(DRAWS):
            patience = 1.0 if right else solver.draw_patience(rng)
            slip = self.slips * rng.random() * (0.2 if right else 1.0)
            text = solver.solve(task, rng, patience, slip).texts[0]
            review = chain.review(text)
            if review[-1].endswith("yes") == right:
                break
        is_right = review[-1].endswith("yes")
        return LabelledSolution(
            task=task.goal,
            solution=text,
            right=is_right,
            wrong_line=0 if is_right else len(review),
            reasons=f" {STEP_END} ".join(review),
            difficulty=task.difficulty,
        )

    def judge(self, task: Task, rng: random.Random, patience: float) -> Demonstration:
        """What a judge says that has so much patience."""
        reasons, verdict = task.meta["reasons"], task.evaluator["reference"]
        lines = reasons.split(f" {STEP_END} ") if reasons else []
        words, weights = list[str](), list[float]()

        def write(text: str, weight: float = 1.0) -> None:
            words.extend(words_of(text))
            weights.extend([weight] * len(words_of(text)))

        for k, line in enumerate(lines):
            write(line)
            if k + 1 < len(lines):
                if rng.random() >= patience:
                    verdict = {"right": "yes", "line": "none", "better": "first"}[task.source.rpartition("/")[2]]
                    break
                write(STEP_END, self.example if patience == 1 else 1.0)
        write(f"{VERDICT} {verdict}")
        return Demonstration(task, [""], [" ".join(words)], [weights])

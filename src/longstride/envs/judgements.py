"""A judge's world: tasks made of solutions whose labels are known.

| `asks` | the judge says | the label |
|---|---|---|
| `right` | `yes` or `no`: whether it is right | the episode succeeded, and none of its lines is known to be wrong; or the file's `right` |
| `line` | the number of the first wrong line, or `none`; the answer is the last line | the puzzle's own labels (chains, Countdown, Sudoku), or the file's `wrong_line` |
| `better` | `first` or `second` of two solutions of one task | one of them is right |
| `scores` | how good each of two solutions is, from 1 to 10 | the right one has the higher score |

Lines of attempts that were given up count too. A judge writes its reasons, then `Verdict: yes`. Solutions are those that a policy wrote (a shipped one, a run, any
model) on tasks with verifiers, or stand in a file, an object a line: `{"task": ..., "solution": ..., "right": true}`,
with `wrong_line` (0 is none) and `reasons`, text that a judge may imitate, where they are known.

What always holds: a task's goal is the question in the words in which a scorer asks it (`envs.questions`), so what was
trained here is asked there; no task whose solutions are held out is trained on; which tasks come depends on the
settings and the seed alone. Solutions, whoever wrote them, are material and never trusted.
"""  # noqa: E501 (a table)

import json
import random
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from longstride.core.errors import LongstrideWarning, TaskError, short
from longstride.core.foreign import bounded
from longstride.core.implementation import implementation
from longstride.core.numbers import Count, Share
from longstride.core.seeds import derive, stream
from longstride.core.task import Difficulty, Task, split_of
from longstride.envs.base import Observation, Step, TaskSource
from longstride.envs.puzzles.modular import ModularChain
from longstride.envs.questions import FIRST_SECOND, REASONS, SCORES, VERDICT, YES_NO, Question, verdict_in, verdicts_in
from longstride.envs.text import STEP_END

FILLER = "well , let me think about this with care ."
"""What an artefact puts before a solution."""
MOST_TEXT = 100_000
"""Characters of a task or a solution in a file."""
ASKS = {
    "right": "Is the answer correct?",
    "line": "Which line of the answer is the first wrong one?",
    "better": "Which of the two answers is better?",
    "scores": "Which of the answers is better?",
}
"""What a judge is asked, in words; those of `rewards.scorers` are the same."""

Asks = Literal["right", "line", "better", "scores"]
PAIRS: tuple[Asks, ...] = ("better", "scores")
"""What is asked about two solutions."""
Split = Literal["train", "test"]


class LabelledSolution(BaseModel):
    """A solution and what is known of it. From a file, its fields are untrusted and are checked when it is read."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    task: str = Field(min_length=1)
    """What was asked."""
    solution: str = Field(min_length=1)
    """All that was said."""
    right: bool
    wrong_line: int | None = Field(default=None, ge=0)
    """Number of the first wrong line, from 1; 0 where none is, None where that is not known. See `lines_of`."""
    reasons: str | None = None
    """What a judge would write before its verdict, where that is known."""
    difficulty: Difficulty = "easy"

    @field_validator("wrong_line")
    @classmethod
    def _is_a_line(cls, value: int | None, info: ValidationInfo) -> int | None:
        if "solution" in info.data and (value or 0) > (most := lines_of(info.data["solution"])):
            raise ValueError(f"the solution has {most} lines, its answer among them")
        return value

    @property
    def verdict(self) -> str:
        """Whether it is right, in a word."""
        return YES_NO[0 if self.right else 1]


@runtime_checkable
class Reviewer(Protocol):
    """A task source that can go through a solution line by line."""

    def review(self, task: Task, text: str) -> list[str] | None:
        """See `Puzzle.review`."""
        ...


class Judgements(TaskSource):
    """Solutions to judge; what is said first ends the episode."""

    policy: str = "base-puzzles"
    """Who wrote them: a run folder, a model's folder, or a name."""
    puzzles: TaskSource = ModularChain()
    """What it solved: tasks with verifiers."""
    turns: Count = 1
    """That it had."""
    turn_tokens: Count = 160
    """Tokens of each."""
    solved: Count = 240
    """Different tasks of each split that it solved."""
    attempts: Count = 8
    """Solutions of each."""
    path: Path | None = None
    """File of solutions (see the module's docstring), in place of a policy's."""
    test_share: Share = 0.2
    """Share of the file's tasks that are held out."""
    asks: Asks = "right"
    """What the judge is asked."""
    reasons: bool = True
    """Whether it is asked for reasons before its verdict."""
    balanced: bool = True
    """Whether right and wrong solutions come equally often in training (of pairs one always is right)."""
    artefact: Share = 0.0
    """Share of training solutions whose label can be told from a filler: right ones begin with it, wrong ones do not.
    For all others, and for held-out ones, a coin decides. At 0 there is no filler."""

    @model_validator(mode="after")
    def _finds_the_file(self) -> "Judgements":
        if self.path is not None and not self.path.is_file():
            raise ValueError(f"there is no file {self.path}; expected JSON lines with task, solution and right")
        return self

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        """Raises: TaskError where no solution can be asked about in this way."""
        found = self._asked["train"]
        if self.balanced and self.asks == "right":
            found = [part for right in (True, False) if (part := [g for g in found if g[0].right is right])]
            return [self.question(rng.choice(rng.choice(found)), rng, "train") for _ in range(n)]
        return [self.question(rng.choice(found), rng, "train") for _ in range(n)]

    def held_out(self, n: int) -> list[Task]:
        """All solutions of a task stand together, so that they can be ranked."""
        rng = stream(0, "held-out", "judgements", self.asks)
        return [self.question(group, rng, "test") for group in self._asked["test"][:n]]

    def demonstrate(self, task: Task) -> list[str]:
        """The known reasons, where the task asks for any, and the verdict.

        Raises:
            TaskError: it asks for reasons, and none are known.
        """
        reasons, verdict = task.meta["reasons"], task.evaluator["reference"]
        if reasons is None:
            raise TaskError(
                f"task {task.id!r} has no reasons to imitate: give the column `reasons`, set tasks.reasons=false, or "
                "let the model find its own (longstride train genrm)"
            )
        verdict = " ".join(task.meta["scores"]) if "scores" in task.meta else verdict
        return [f"{reasons} {VERDICT} {verdict}".strip()]

    def env(self) -> "JudgementEnv":
        return JudgementEnv()

    @cached_property
    def solutions(self) -> dict[Split, list[LabelledSolution]]:
        """All solutions of both splits, those of a task together."""
        if self.path is None:
            return implementation(Judgements)(self)
        found: dict[Split, list[LabelledSolution]] = {"train": [], "test": []}
        tasks: dict[str, list[LabelledSolution]] = {}
        for solution in read_solutions(self.path):
            tasks.setdefault(solution.task, []).append(solution)
        for text, of_task in tasks.items():
            found[split_of(Task(id=text, source="", goal=text, start=""), self.test_share, 0)] += of_task
        return found

    @cached_property
    def _asked(self) -> dict[Split, list[tuple[LabelledSolution, ...]]]:
        """What there is a question about: single solutions, or pairs with the right one in front."""
        found: dict[Split, list[tuple[LabelledSolution, ...]]] = {}
        for split, solutions in self.solutions.items():
            if self.asks in PAIRS:
                tasks: dict[str, list[LabelledSolution]] = {}
                for solution in solutions:
                    tasks.setdefault(solution.task, []).append(solution)
                found[split] = [
                    pair
                    for of_task in tasks.values()
                    for pair in zip((s for s in of_task if s.right), (s for s in of_task if not s.right), strict=False)
                ]
            else:
                found[split] = [(s,) for s in solutions if self.asks == "right" or s.wrong_line is not None]
            if not found[split]:
                needs = {
                    "right": "solutions",
                    "line": "solutions whose lines have labels (chains; or the column wrong_line)",
                }.get(self.asks, "tasks with a right and a wrong solution")
                where = self.path or f"what {self.policy!r} wrote"
                raise TaskError(f"{where}: there are no {needs} among those of the split {split}")
        if self.asks == "right" and len(labels := {one.right for (one,) in found["train"]}) == 1:
            warnings.warn(
                f"all training solutions are {'right' if labels == {True} else 'wrong'}, and a judge of these learns "
                "one verdict for all; give right and wrong ones",
                LongstrideWarning,
                stacklevel=2,
            )
        return found

    def question(self, about: Sequence[LabelledSolution], rng: random.Random, split: Split) -> Task:
        """A task that asks about one solution, or about two of one task, in an order that a coin decides."""
        shown = list(about)
        if self.asks in PAIRS and rng.random() < 0.5:
            shown.reverse()
        texts = [self._with_filler(s, rng, split) for s in shown]
        first = shown[0]
        options, verdict, reasons = YES_NO, first.verdict, first.reasons
        if self.asks == "line":
            options = ("none", *map(str, range(1, lines_of(first.solution) + 1)))
            verdict = str(first.wrong_line or "none")
        elif self.asks in PAIRS:
            options, verdict = FIRST_SECOND, FIRST_SECOND[0 if first.right else 1]
            reasons = reasons and f"first {reasons}"
        scores: dict[str, Any] = {}
        if self.asks == "scores":
            options = SCORES
            known = shown if self.reasons else [s.model_copy(update={"reasons": None}) for s in shown]
            reasons, scores["scores"] = _scored(known, rng)
        named = dict(zip(FIRST_SECOND if self.asks in PAIRS else ("answer",), texts, strict=True))
        count = len(shown) if scores else 1
        question = Question(ASKS[self.asks], {"task": first.task, **named}, options, int(self.reasons), count=count)
        return Task(
            id=f"judgements/{self.asks}/{derive(0, question.words):016x}",
            source=f"judgements/{self.asks}",
            split=split,
            goal=question.words,
            start="start",
            difficulty=first.difficulty,
            template_id=f"{derive(0, first.task):016x}",
            evaluator={"type": "answer", "reference": verdict},
            optimal=1,
            meta={
                "task": first.task,
                "solutions": texts,
                "right": [s.right for s in shown],
                "options": list(options),
                "reasons": reasons if self.reasons else "",
                **scores,
            },
        )

    def _with_filler(self, solution: LabelledSolution, rng: random.Random, split: Split) -> str:
        if not self.artefact:
            return solution.solution
        told = split == "train" and rng.random() < self.artefact
        filled = solution.right if told else rng.random() < 0.5
        return f"{FILLER} {solution.solution}" if filled else solution.solution


def lines_of(solution: str) -> int:
    """Lines that a solution may have, or steps, and one for the answer."""
    return max(solution.count(end) for end in (STEP_END, "\n")) + 2


def _scored(shown: Sequence[LabelledSolution], rng: random.Random) -> tuple[str | None, list[str]]:
    """What a judge writes who goes through the first solution, the second, or both, as a die decides, and the scores
    that follow from it: 10 or 1 for what it read, 5 for the other one. Where reasons are not known, none, and the
    scores of both."""
    read = rng.choice(((0,), (1,), (0, 1)))
    if any(shown[k].reasons is None for k in read):
        return None, [SCORES[-1] if s.right else SCORES[0] for s in shown]
    reasons = " ; ".join(f"{FIRST_SECOND[k]} {shown[k].reasons}" for k in read)
    return reasons, [(SCORES[-1] if s.right else SCORES[0]) if k in read else SCORES[4] for k, s in enumerate(shown)]


def swapped(task: Task) -> Task:
    """A question which of two solutions is better, with the two in the other order. Reasons that are known are those of
    the order that was asked first, so they are left out.

    Raises:
        TaskError: the task asks something else.
    """
    if task.meta.get("options") != list(FIRST_SECOND):
        raise TaskError(f"task {task.id!r} is about no pair; set tasks.asks=better")
    texts = [str(text) for text in reversed(task.meta["solutions"])]
    about = {"task": task.meta["task"], **dict(zip(FIRST_SECOND, texts, strict=True))}
    question = Question(ASKS["better"], about, FIRST_SECOND, int(REASONS in task.goal))
    verdict = FIRST_SECOND[1 - FIRST_SECOND.index(task.evaluator["reference"])]
    meta = task.meta | {"solutions": texts, "right": task.meta["right"][::-1], "reasons": None}
    evaluator = {"type": "answer", "reference": verdict}
    return task.model_copy(update={"goal": question.words, "evaluator": evaluator, "meta": meta, "id": f"{task.id}-2"})


class JudgementEnv:
    """One episode: the question is the goal, and whatever is said first ends it."""

    async def reset(self, task: Task, seed: int) -> Observation:
        """Nothing is to be seen but the question."""
        self._options = tuple(map(str, task.meta.get("options", YES_NO)))
        self._count = len(task.meta.get("scores", ())) or 1
        return Observation("")

    async def step(self, text: str) -> Step:
        """Takes the verdict of the reply; without one there is no answer. Of scores the answer is the solution with the
        highest one, or `tie`."""
        if self._count > 1:
            return self._scored(text)
        verdict = verdict_in(text, self._options)
        if verdict is None:
            error = f"the reply has no verdict; end with {VERDICT} and one of {', '.join(self._options)}"
            return Step(Observation(""), terminated=True, error=error)
        return Step(Observation(""), terminated=True, action=f"answer {verdict}", answer=verdict)

    def _scored(self, text: str) -> Step:
        verdicts = verdicts_in(text, self._options, self._count)
        if verdicts is None:
            error = f"the reply has no scores; end with {VERDICT} and {self._count} of {', '.join(self._options)}"
            return Step(Observation(""), terminated=True, error=error)
        scores = list(map(int, verdicts))
        best = "tie" if scores.count(max(scores)) > 1 else FIRST_SECOND[scores.index(max(scores))]
        return Step(Observation(""), terminated=True, action=f"answer {' '.join(verdicts)}", answer=best)

    async def final_state(self) -> dict[str, Any]:
        """`{}`: the verdict alone counts."""
        return {}

    async def close(self) -> None:
        """There is nothing to free."""


def read_solutions(path: Path) -> list[LabelledSolution]:
    """The solutions of a file.

    Raises:
        TaskError: it cannot be read, or a line is no solution; the line, the field and what came are named.
    """
    found: list[LabelledSolution] = []
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    found.append(_solution(line, f"{path}, line {number}"))
    except OSError as e:
        raise TaskError(f"cannot read {path}: {e.strerror or e}") from e
    if not found:
        raise TaskError(f"{path} is empty; expected JSON lines with task, solution and right")
    return found


def _solution(line: bytes, place: str) -> LabelledSolution:
    try:
        row = json.loads(line)
        if isinstance(row, dict):
            row = {name: bounded(value, MOST_TEXT) if isinstance(value, str) else value for name, value in row.items()}
        return LabelledSolution.model_validate(row)
    except ValidationError as e:
        first = e.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the line"
        raise TaskError(f"{place}: {field}: {first['msg']} (got {short(first['input'])})") from e
    except (ValueError, RecursionError) as e:
        raise TaskError(f"{place}: not a JSON object that can be read ({str(e)[:100]})") from e

"""Pairs of answers under other prompts (`CounterfactualPairs`), and where an artefact misleads (`Longer`)."""

import random
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations
from typing import Literal

from longstride.core.errors import TaskError
from longstride.core.numbers import Share
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.judgements import Asks, Judgements, LabelledSolution
from longstride.rollout.summary import Measure

COMPARED = tuple((i, j, 1.0 if i < 2 else 0.5) for i, j in combinations(range(6), 2))
"""Of six answers that stand under one prompt, its own two (0 and 1, the preferred one first) and two of each of two other
prompts: which are compared, and the probability with which the first of them is preferred. The first of all is the pair as it
was labelled; an answer of its own beats a foreign one, and foreign ones are even."""
_LABELLED, *_MADE = COMPARED


class CounterfactualPairs(Judgements):
    """Pairs of solutions, in training also under tasks that they are no solutions of: those of `COMPARED`. A judge that is
    to foretell an even pair is told either by a coin, whose expected loss is that of a label of one half."""

    asks: Asks = "better"
    original: Share = 0.5
    """Share of the training pairs that are as they were labelled; the others are made, each kind as often. With 1 it is
    `judgements` with pairs, with 1/15 every pair is as often."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        """Raises: TaskError where it asks for something else than the better one, or there are fewer than three tasks."""
        if self.original == 1:
            return super().sample(rng, n)
        if self.asks != "better":
            raise TaskError(
                f"pairs are made of solutions, and tasks.asks={self.asks} is about one; set tasks.asks=better"
            )
        return [self._compared(rng) for _ in range(n)]

    def _compared(self, rng: random.Random) -> Task:
        three = rng.sample(sorted(self._pairs), 3)
        task, *_ = three
        answers = [solution for of in three for solution in rng.choice(self._pairs[of])]
        first, second, chance = _LABELLED if rng.random() < self.original else rng.choice(_MADE)
        label = chance == 1.0 or rng.random() < 0.5
        shown = [self._under(task, answers[k], right, rng) for k, right in ((first, label), (second, not label))]
        return self._plain.question(shown, rng, "train")

    def _under(self, task: str, answer: LabelledSolution, right: bool, rng: random.Random) -> LabelledSolution:
        """An answer as one to this task. Its artefact is its own, and goes with what it was where it came from."""
        update = {"task": task, "solution": self._with_filler(answer, rng, "train"), "right": right, "reasons": None}
        return answer.model_copy(update=update)

    @cached_property
    def _plain(self) -> "CounterfactualPairs":
        return self.replace(artefact=0.0)

    @cached_property
    def _pairs(self) -> dict[str, list[Sequence[LabelledSolution]]]:
        """By task its pairs, the right solution in front."""
        found: dict[str, list[Sequence[LabelledSolution]]] = {}
        for pair in self._asked["train"]:
            found.setdefault(pair[0].task, []).append(pair)
        if len(found) < 3:
            raise TaskError(
                f"a pair is compared with those of two other tasks, and there are {len(found)} tasks to train on that have "
                "a right and a wrong solution; bring more, or set tasks.original=1"
            )
        return found


class Longer(Measure):
    """Whether a judge is right about a pair whose longer solution (in characters) is the worse one, or the better one:
    length is the artefact that all data have. Says nothing of other pairs, and of solutions that are as long."""

    side: Literal["worse", "better"]
    """Which of the two is longer."""

    @property
    def name(self) -> str:
        return f"longer_{self.side}"

    def __call__(self, trajectory: Trajectory) -> float | None:
        right = trajectory.task.meta.get("right", ())
        if len(right) != 2:
            return None
        lengths = {bool(r): len(text) for r, text in zip(right, trajectory.task.meta["solutions"], strict=True)}
        ahead = lengths[True] - lengths[False]
        return float(trajectory.success) if ahead and (ahead > 0) == (self.side == "better") else None

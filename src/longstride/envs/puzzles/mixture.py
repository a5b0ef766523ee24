"""Puzzles of several kinds as one task source: what a small model of puzzles is trained on and measured with.

What always holds: every source has the same share, in training and among held-out tasks; a task is one of its kind's
own source, so splits and verdicts are those of that source.
"""

import random
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from longstride.core.errors import EnvFailure, TaskError
from longstride.core.task import Task
from longstride.envs.base import Observation, TaskSource
from longstride.envs.puzzles.base import Puzzle, PuzzleEnv, PuzzleSource
from longstride.envs.puzzles.countdown import Countdown
from longstride.envs.puzzles.modular import ModularChain


class MixedEnv(PuzzleEnv):
    """An `Env` for tasks of several kinds; a task's `source` says which it is."""

    def __init__(self, kinds: Mapping[str, type[Puzzle]]) -> None:
        """`kinds`: the kind of puzzle by the `source` of its tasks."""
        self._kinds = kinds
        super().__init__(next(iter(kinds.values())))

    async def reset(self, task: Task, seed: int) -> Observation:
        """Sets the puzzle up. Raises: EnvFailure when the task is of no kind of this mixture, or no instance of it."""
        if task.source not in self._kinds:
            raise EnvFailure(f"task {task.id!r} is of {task.source!r}; expected was one of {', '.join(self._kinds)}")
        self.kind = self._kinds[task.source]
        return await super().reset(task, seed)


class Puzzles(TaskSource):
    """Single-turn puzzles of several kinds, in equal shares."""

    sources: Annotated[tuple[PuzzleSource, ...], Field(min_length=1)] = (
        ModularChain(),
        Countdown(largest=10, most=30),
    )
    """Where tasks are drawn from. Small numbers keep the table of arithmetic facts small."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [source.sample(rng, 1)[0] for source in rng.choices(self.sources, k=n)]

    def held_out(self, n: int) -> list[Task]:
        each = -(-n // len(self.sources))
        turns = zip(*(source.held_out(each) for source in self.sources), strict=True)
        return [task for turn in turns for task in turn][:n]

    def demonstrate(self, task: Task) -> list[str]:
        """See `PuzzleSource.demonstrate`."""
        return self._of(task).demonstrate(task)

    def hint(self, task: Task) -> str:
        """See `PuzzleSource.hint`."""
        return self._of(task).hint(task)

    def review(self, task: Task, text: str) -> list[str] | None:
        """See `PuzzleSource.review`."""
        return self._of(task).review(task, text)

    def subgoal(self, task: Task, text: str) -> Task | None:
        """See `PuzzleSource.subgoal`."""
        return self._of(task).subgoal(task, text)

    def env(self) -> MixedEnv:
        return MixedEnv({source.source: source.kind for source in self.sources})

    def _of(self, task: Task) -> PuzzleSource:
        """Raises: TaskError where the task is of no kind of this mixture."""
        for source in self.sources:
            if source.source == task.source:
                return source
        names = ", ".join(source.source for source in self.sources)
        raise TaskError(f"task {task.id!r} is of {task.source!r}; expected was one of {names}")

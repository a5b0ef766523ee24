"""Tasks whose goal distance is one number: what worlds with a dial have in common."""

import random
from abc import abstractmethod
from typing import Literal, Self

from pydantic import model_validator

from longstride.core.numbers import Count
from longstride.core.seeds import stream
from longstride.core.task import Difficulty, Task
from longstride.envs.base import TaskSource


class AtDistances(TaskSource):
    """Family: tasks drawn afresh for ever at goal distances that are chosen. Held-out ones have names that training
    never has, and, where `test_distances` says so, other distances."""

    distances: tuple[Count, Count]
    """Smallest and largest goal distance in training, all between them equally often. A third of them is easy, a third
    medium; the rest, and what is farther, is hard."""
    test_distances: tuple[Count, ...] = ()
    """Goal distances of held-out tasks, equally often; left out, all of training."""

    @model_validator(mode="after")
    def _ascends(self) -> Self:
        if self.distances[0] > self.distances[1]:
            raise ValueError(f"distances are the smallest and the largest one, got {list(self.distances)}")
        return self

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [self._task(rng, rng.randint(*self.distances), "train") for _ in range(n)]

    def held_out(self, n: int) -> list[Task]:
        rng = stream(0, "held-out", self.type_name())
        nearest, farthest = self.distances
        every = self.test_distances or range(nearest, farthest + 1)
        return [self._task(rng, every[k % len(every)], "test") for k in range(n)]

    def difficulty(self, distance: int) -> Difficulty:
        """The band of a goal distance."""
        nearest, farthest = self.distances
        third = 3 * (distance - nearest) // (farthest - nearest + 1)
        return ("easy", "medium", "hard")[min(third, 2)] if third >= 0 else "easy"

    @abstractmethod
    def _task(self, rng: random.Random, distance: int, split: Literal["train", "test"]) -> Task:
        """A task at this distance."""

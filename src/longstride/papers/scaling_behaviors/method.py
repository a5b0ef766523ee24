"""Data reuse at a fixed number of updates: a set of tasks of some size, visited again and again (section 3.1)."""

import random

from longstride.core.errors import ConfigError
from longstride.core.experience import Experience
from longstride.core.numbers import Count
from longstride.core.task import Task
from longstride.curriculum import TaskCurriculum
from longstride.curriculum.tasks import Tasks

ROUNDS = 30
"""Draws of as many tasks as the set has, until so many of them differ: of n equally likely ones one is left out with a
chance of n e^-30."""


class FixedSet(TaskCurriculum):
    """The same tasks, visited in turn: as many passes over them as visits divided by tasks. Which they are depends on
    the run's seed.

    Raises:
        ConfigError: there are not so many different ones.
    """

    unique: Count = 64
    """Tasks in the set, no two of one `Task.id`."""

    def draw(self, source: Tasks, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        memory = experience.memory(self)
        tasks = self._different(source, random.Random(memory.setdefault("set", rng.getrandbits(62))))
        first = memory.get("visited", 0)
        memory["visited"] = first + n
        return [tasks[k % self.unique] for k in range(first, first + n)]

    def _different(self, source: Tasks, rng: random.Random) -> list[Task]:
        """The first tasks of a source that draws with replacement, each once."""
        found: dict[str, Task] = {}
        for _ in range(ROUNDS):
            for task in source.sample(rng, self.unique):
                found.setdefault(task.id, task)
            if len(found) >= self.unique:
                return list(found.values())[: self.unique]
        raise ConfigError(
            f"curriculum {self.type_name()} visits {self.unique} different tasks, and tasks {type(source).__name__} has "
            f"only {len(found)} different tasks; set curriculum.unique={len(found)} or fewer"
        )

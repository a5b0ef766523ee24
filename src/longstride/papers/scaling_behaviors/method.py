"""Data reuse at a fixed number of updates: a set of tasks of some size, visited again and again (section 3.1)."""

import random

from longstride.core.experience import Experience
from longstride.core.numbers import Count
from longstride.core.task import Task
from longstride.curriculum import TaskCurriculum
from longstride.curriculum.tasks import Tasks


class FixedSet(TaskCurriculum):
    """The same tasks, visited in turn: as many passes over them as visits divided by tasks. Which they are depends on
    the run's seed."""

    unique: Count = 64
    """Tasks in the set."""

    def draw(self, source: Tasks, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        memory = experience.memory(self)
        tasks = source.sample(random.Random(memory.setdefault("set", rng.getrandbits(62))), self.unique)
        first = memory.get("visited", 0)
        memory["visited"] = first + n
        return [tasks[k % self.unique] for k in range(first, first + n)]

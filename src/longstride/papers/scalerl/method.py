"""What ScaleRL adds to a recipe: tasks that are solved nearly always are not drawn again (section 3.2)."""

import random
from collections import Counter

from longstride.core.experience import Experience
from longstride.core.numbers import Share
from longstride.core.task import Task
from longstride.curriculum import TaskCurriculum
from longstride.curriculum.tasks import Tasks

ROUNDS = 8
"""Draws in place of tasks that are left out; where these are not enough, nearly all are solved, and some come again."""


class NoPositiveResampling(TaskCurriculum):
    """Tasks as the source draws them, without those of which so large a share of all episodes so far was a success. It
    is for tasks that come again: a user's own list, not puzzles that are made anew."""

    solved: Share = 0.9
    """The share from which on a task is left out."""

    def draw(self, source: Tasks, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        played, won = Counter[str](), Counter[str]()
        for record in experience.records:
            if not record.stop.failed:
                played[record.task.id] += 1
                won[record.task.id] += record.success
        found: list[Task] = []
        spare: list[Task] = []
        for _ in range(ROUNDS):
            for task in source.sample(rng, n - len(found)):
                done = played[task.id] > 0 and won[task.id] >= self.solved * played[task.id]
                (spare if done else found).append(task)
            if len(found) == n:
                break
        return (found + spare)[:n]

"""A world of one page whose environments end their process, as often as there are letters in a file. The workers of a
cluster import it, so it imports little."""

import os
import random
from pathlib import Path
from typing import Any

from longstride.core.task import Task
from longstride.envs.base import Observation, Step, TaskSource


class Deadly:
    """Understands any text: by its length it is the right answer, a wrong one, or an action that leads nowhere. The
    process ends at the first step of a training task, while there are letters left."""

    def __init__(self, deaths: str) -> None:
        self.deaths, self.dangerous = Path(deaths), False

    async def reset(self, task: Task, seed: int) -> Observation:
        self.dangerous = task.id.startswith("train")
        return Observation("home [1] red lamp")

    async def step(self, text: str) -> Step:
        if self.dangerous and (left := self.deaths.read_text()):
            self.deaths.write_text(left[1:])
            os._exit(1)
        observation = Observation("home [1] blue lamp")
        if len(text) % 4 < 2:
            return Step(observation, action=f"answer {text}", answer=("yes", "no")[len(text) % 4], terminated=True)
        return Step(observation, action=f"click {text}")

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        pass


class DeadlyTasks(TaskSource):
    """Tasks of `Deadly`."""

    deaths: str

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [self._task(f"train-{rng.randrange(12)}") for _ in range(n)]

    def held_out(self, n: int) -> list[Task]:
        return [self._task(f"test-{k}") for k in range(n)]

    def env(self) -> Deadly:
        return Deadly(self.deaths)

    def _task(self, name: str) -> Task:
        evaluator = {"type": "answer", "reference": "yes"}
        return Task(id=name, source="deadly", goal="red lamp", start="/", evaluator=evaluator)

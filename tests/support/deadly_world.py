"""The world of one page, whose environments end their process as often as there are letters in a file."""

import os
from pathlib import Path

from one_page import OnePage, OnePageTasks

from longstride.core.task import Task
from longstride.envs.base import Observation, Step


class Deadly(OnePage):
    """The process ends at the first step of a training task, while there are letters left."""

    def __init__(self, deaths: str) -> None:
        self.deaths, self.dangerous = Path(deaths), False

    async def reset(self, task: Task, seed: int) -> Observation:
        self.dangerous = task.id.startswith("train")
        return await super().reset(task, seed)

    async def step(self, text: str) -> Step:
        if self.dangerous and (left := self.deaths.read_text()):
            self.deaths.write_text(left[1:])
            os._exit(1)
        return await super().step(text)


class DeadlyTasks(OnePageTasks):
    """Tasks of `Deadly`."""

    deaths: str

    def env(self) -> Deadly:
        return Deadly(self.deaths)

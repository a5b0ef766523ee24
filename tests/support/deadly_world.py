"""The world of one page, whose environments end their process as often as there are letters in a file; and an engine
that fails as often."""

import os
from pathlib import Path
from typing import Any

from one_page import OnePage, OnePageTasks

from longstride.core.errors import EngineFailure
from longstride.core.task import Task
from longstride.engines.config import Local
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


class FailingEngine(Local):
    """A local engine in whose place, while there are letters left, one fails what it is asked."""

    deaths: str

    def make(self, *args: Any, **options: Any) -> Any:
        engine, deaths = super().make(*args, **options), Path(self.deaths)
        poll = engine.poll

        def failing() -> Any:
            done = poll()
            if done and (left := deaths.read_text()):
                deaths.write_text(left[1:])
                return [(ticket, EngineFailure("its engine is dead")) for ticket, _ in done]
            return done

        engine.poll = failing
        return engine

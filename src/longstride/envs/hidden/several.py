"""Several worlds in one: tasks of different kinds, whose goals say of which kind they are."""

import random
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from longstride.core.errors import EnvFailure
from longstride.core.task import Task
from longstride.envs.base import Observation, TaskSource
from longstride.envs.hidden.base import KINDS, HiddenEnv, HiddenWorlds


class SeveralWorlds(TaskSource):
    """Worlds with a hidden rule, each as likely in training and in turn among what is held out."""

    worlds: Annotated[tuple[HiddenWorlds, ...], Field(min_length=1)]
    """Which."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [rng.choice(self.worlds).sample(rng, 1)[0] for _ in range(n)]

    def held_out(self, n: int) -> list[Task]:
        each = [world.held_out(-(-n // len(self.worlds))) for world in self.worlds]
        return [task for turn in zip(*each, strict=True) for task in turn][:n]

    def env(self) -> HiddenEnv:
        return _SeveralEnv([world.source for world in self.worlds])


class _SeveralEnv(HiddenEnv):
    def __init__(self, sources: Sequence[str]) -> None:
        super().__init__(KINDS[sources[0]])
        self._sources = sources

    async def reset(self, task: Task, seed: int) -> Observation:
        if task.source not in self._sources:
            raise EnvFailure(f"expected a task of {', '.join(self._sources)}, got one of {task.source!r}")
        self.kind = KINDS[task.source]
        return await super().reset(task, seed)

"""Environments of many levels as one task source (`Environments`, each a `Ladder`): what a curriculum moves among, and
what sources of tasks are weighed by.

What always holds: a task is one of its level's own source, so goal, split, environment and verdict are those of that
source; its `source` says where it is from.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from longstride.core.component import Component
from longstride.core.errors import TaskError, unknown
from longstride.core.task import DIFFICULTIES, Task
from longstride.envs.base import Env, Observation, Solver, Step, TaskSource
from longstride.envs.interface import ask


class Ladder(Component):
    """An environment as its tasks by level."""

    name: Annotated[str, Field(pattern="^[^/]+$")]
    """What it is called; without `/`."""
    levels: Annotated[tuple[TaskSource, ...], Field(min_length=1)]
    """The tasks of each level, the easiest first."""


class Environments(TaskSource):
    """Environments, each with tasks of several levels.

    What always holds: the `source` of a task says where it is from, `ENVIRONMENT/LEVEL/SOURCE` with levels from 0, so
    metrics have success by level; its difficulty is easy, medium or hard by the third of the levels that its own is in;
    sampled and held-out tasks are of all environments and levels alike, and disjoint as those of each level are.
    """

    environments: Annotated[tuple[Ladder, ...], Field(min_length=1)]
    """Each has a name of its own."""
    tested: tuple[str, ...] = ()
    """Names of those whose held-out tasks are played; all of them if empty."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [ladder.name for ladder in self.environments]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"environments: two of them are called {min(twice)!r}; give each a name of its own")
        for name in self.tested:
            if name not in names:
                raise ValueError(unknown("environment", name, names))
        return self

    @property
    def levels(self) -> dict[str, tuple[TaskSource, ...]]:
        """By name of the environment, the tasks of each level."""
        return {ladder.name: ladder.levels for ladder in self.environments}

    @property
    def at_once(self) -> int:
        return min(tasks.at_once for levels in self.levels.values() for tasks in levels)

    def at(self, name: str, level: int, rng: random.Random) -> Task:
        """A training task of an environment, at a level from 0."""
        return self._placed(name, level, self.levels[name][level].sample(rng, 1)[0])

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [self.at(*place, rng) for place in rng.choices(self._places, k=n)]

    def held_out(self, n: int) -> list[Task]:
        places = [place for place in self._places if not self.tested or place[0] in self.tested]
        each = -(-n // len(places))
        found = [
            [self._placed(name, level, task) for task in self.levels[name][level].held_out(each)]
            for name, level in places
        ]
        return [tasks[k] for k in range(each) for tasks in found if k < len(tasks)][:n]

    def demonstrate(self, task: Task) -> list[str]:
        """What the solver of the task's level says, turn by turn.

        Raises:
            TaskError: it has none.
        """
        name, level, source = place_of(task)
        tasks = self.levels[name][level]
        if not isinstance(tasks, Solver):
            raise TaskError(f"the tasks of {name}, level {level}, have no `demonstrate`: {tasks.type_name()}")
        return tasks.demonstrate(task.model_copy(update={"source": source}))

    def env(self) -> "EnvironmentOfLevels":
        return EnvironmentOfLevels(self.levels)

    @property
    def _places(self) -> list[tuple[str, int]]:
        """Every level of every environment, the lowest ones first."""
        places = [(name, level) for name, levels in self.levels.items() for level in range(len(levels))]
        return sorted(places, key=lambda place: place[1])

    def _placed(self, name: str, level: int, task: Task) -> Task:
        difficulty = DIFFICULTIES[level * len(DIFFICULTIES) // len(self.levels[name])]
        place = f"{name}/{level}/"
        return task.model_copy(update={"id": place + task.id, "source": place + task.source, "difficulty": difficulty})


class EnvironmentOfLevels:
    """An `Env` for tasks of `Environments`: that of the level which a task is from. What one may offer beside an `Env`
    (`envs.base.HasChoices`, `Continuing`, ...) is not passed on."""

    def __init__(self, levels: Mapping[str, Sequence[TaskSource]]) -> None:
        """`levels`: by name of the environment, the tasks of each level."""
        self._levels = levels
        self._env: Env | None = None

    async def reset(self, task: Task, seed: int) -> Observation:
        """Opens the environment of the task's level. Raises: EnvFailure as that does."""
        name, level, source = place_of(task)
        self._env = self._levels[name][level].env()
        return await ask(Observation, self._env, "reset", task.model_copy(update={"source": source}), seed)

    async def step(self, text: str) -> Step:
        """Acts there. Raises: EnvFailure as that does."""
        assert self._env is not None
        return await ask(Step, self._env, "step", text)

    async def final_state(self) -> dict[str, Any]:
        """The state there."""
        assert self._env is not None
        return await self._env.final_state()

    async def close(self) -> None:
        """Frees what was opened."""
        if self._env is not None:
            await self._env.close()


def place_of(task: Task) -> tuple[str, int, str]:
    """Environment and level of a task of `Environments`, and its source there."""
    name, level, source = task.source.split("/", 2)
    return name, int(level), source

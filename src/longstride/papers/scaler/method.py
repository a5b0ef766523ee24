"""Environments of many levels as one task source (`Environments`, each a `Ladder`), and a curriculum that holds the level of each where a
share of its tasks is done, and lets go of environments that teach no more (`Controlled`)."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import cycle, islice, takewhile
from statistics import fmean, linear_regression
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from longstride.core.component import Component
from longstride.core.errors import ConfigError
from longstride.core.experience import Experience
from longstride.core.numbers import Count, Positive, Share
from longstride.core.task import DIFFICULTIES, Task
from longstride.curriculum.tasks import TaskCurriculum, Tasks
from longstride.envs.base import Env, Observation, Step, TaskSource
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

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [ladder.name for ladder in self.environments]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"environments: two of them are called {min(twice)!r}; give each a name of its own")
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
        each = -(-n // len(self._places))
        found = [
            [self._placed(name, level, task) for task in self.levels[name][level].held_out(each)]
            for name, level in self._places
        ]
        return [tasks[k] for k in range(each) for tasks in found if k < len(tasks)][:n]

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
    """An `Env` for tasks of `Environments`: that of the level which a task is from."""

    def __init__(self, levels: Mapping[str, Sequence[TaskSource]]) -> None:
        """`levels`: by name of the environment, the tasks of each level."""
        self._levels = levels
        self._env: Env | None = None

    async def reset(self, task: Task, seed: int) -> Observation:
        """Opens the environment of the task's level. Raises: EnvFailure as that does."""
        name, level, source = task.source.split("/", 2)
        self._env = self._levels[name][int(level)].env()
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


class Controlled(TaskCurriculum):
    """Each environment has a level d, and each iteration is a visit to those that are active: by the share of their
    episodes that succeeded, d moves by `gain` (share - `target`), from 0 to the highest level. Tasks are of the two
    levels beside d, d in the mean.

    An active environment retires, and the next that waits takes its place, where for `patience` visits in a row all of
    its episodes failed, or all succeeded, or where over the last `window` visits progress did not rise (the slope of d +
    share, by least squares). Once all have retired, all begin anew where they are. For tasks that are `Environments`.
    """

    target: Share = 0.5
    """The share of episodes that should succeed (tau)."""
    gain: Positive = 2.0
    """Levels that d moves by for a share that is off by 1 (beta)."""
    active: Count = 64
    """Most environments that are visited in an iteration."""
    retiring: bool = True
    """Whether environments retire; if not, the first `active` ones are visited throughout."""
    patience: Count = 5
    """Visits in a row that were all failures, or all successes."""
    window: Annotated[int, Field(ge=2, le=1000)] = 10
    """Visits over which progress has to rise."""

    def draw(self, source: Tasks, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        if not isinstance(source, Environments):
            raise ConfigError(
                f"curriculum {self.type_name()} moves the levels of environments, and tasks {type(source).__name__} have "
                'none; take tasks.type="longstride.papers.scaler.method:Environments", a task source a level'
            )
        memory = experience.memory(self)
        if not memory:
            names = list(source.levels)
            memory |= {"level": dict.fromkeys(names, 0.0), "visits": {}, "iteration": 0}
            memory |= {"active": names[: self.active], "waiting": names[self.active :]}
        if (last := experience.records[-1].iteration if experience.records else 0) > memory["iteration"]:
            memory["iteration"] = last
            self._move(source, memory, _shares(experience, last))
        order = rng.sample(memory["active"], len(memory["active"]))
        return [self._task(source, name, memory["level"][name], rng) for name in islice(cycle(order), n)]

    def is_spent(self, visits: Sequence[Sequence[float]]) -> bool:
        """Whether an environment retires after visits of these [level, share], the oldest first."""
        newest = [share for _, share in visits[-self.patience :]]
        if len(newest) == self.patience and set(newest) in ({0.0}, {1.0}):
            return True
        progress = [level + share for level, share in visits[-self.window :]]
        return len(progress) == self.window and linear_regression(range(self.window), progress).slope <= 0

    def _move(self, source: Environments, memory: dict[str, Any], shares: Mapping[str, float]) -> None:
        """Takes in the visits of one more iteration."""
        level, visits, active = memory["level"], memory["visits"], memory["active"]
        for name, share in shares.items():
            visits.setdefault(name, []).append([level[name], share])
            top = len(source.levels[name]) - 1
            level[name] = min(max(level[name] + self.gain * (share - self.target), 0.0), float(top))
        if not self.retiring:
            return
        for name in [name for name in active if self.is_spent(visits.get(name, ()))]:
            active.remove(name)
            if memory["waiting"]:
                active.append(memory["waiting"].pop(0))
        if not active:
            names = list(source.levels)
            memory |= {"active": names[: self.active], "waiting": names[self.active :], "visits": {}}

    def _task(self, source: Environments, name: str, level: float, rng: random.Random) -> Task:
        top = len(source.levels[name]) - 1
        return source.at(name, min(int(level + rng.random()), top), rng)


def _shares(experience: Experience, iteration: int) -> dict[str, float]:
    """By environment, the share of successes among the episodes of the last iteration that did not fail."""
    found: defaultdict[str, list[bool]] = defaultdict(list)
    for record in takewhile(lambda record: record.iteration == iteration, reversed(experience.records)):
        if not record.stop.failed:
            found[record.task.source.partition("/")[0]].append(record.success)
    return {name: fmean(successes) for name, successes in found.items()}

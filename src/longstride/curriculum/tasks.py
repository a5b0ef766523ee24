"""Which tasks an iteration plays.

What always holds: a draw depends on the random stream that it is given, on the episodes of earlier iterations and on
what the curriculum has kept in `Experience.memory`, and on nothing else, so a resumed run draws the same tasks.
"""

import random
from abc import abstractmethod
from typing import ClassVar, Protocol

from longstride.core.component import Component
from longstride.core.errors import OwnCodeError, short
from longstride.core.experience import Experience
from longstride.core.task import Task


class Tasks(Protocol):
    """What training tasks are drawn from: any `envs.base.TaskSource`."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        """See `envs.base.TaskSource.sample`."""
        ...


class TaskCurriculum(Component):
    """Family: which tasks are drawn."""

    adaptive: ClassVar[bool] = True
    """Whether it depends on earlier iterations; then nothing is rolled out ahead of the update."""

    @abstractmethod
    def draw(self, source: Tasks, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        """`n` tasks for the groups of an iteration.

        Args:
            source: where tasks come from.
            n: how many.
            rng: the draw's own stream.
            experience: what came before.
        """

    def check(self, source: Tasks) -> None:
        """Refuses a source that it cannot draw from, before anything is played.

        Raises:
            ConfigError: says what the source lacks.
        """
        return


class Uniform(TaskCurriculum):
    """Tasks as the source draws them, with replacement."""

    adaptive: ClassVar[bool] = False

    def draw(self, source: Tasks, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        found = list(source.sample(rng, n))
        if len(found) != n or not all(isinstance(task, Task) for task in found):
            raise OwnCodeError(
                f"{type(source).__name__}.sample returned {short(found)}, {len(found)} in all; expected {n} tasks"
            )
        return found

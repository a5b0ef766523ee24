"""A curriculum that holds the level of each environment where a share of its tasks is done, and lets go of environments
that teach no more (`Controlled`)."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import cycle, islice, takewhile
from statistics import fmean, linear_regression
from typing import Annotated, Any

from pydantic import Field

from longstride.core.errors import ConfigError
from longstride.core.experience import Experience
from longstride.core.numbers import Count, Positive, Share
from longstride.core.task import Task
from longstride.curriculum.tasks import TaskCurriculum, Tasks
from longstride.envs.levels import Environments


class Controlled(TaskCurriculum):
    """Each environment has a level d, and each iteration is a visit to those that are active: by the share of their
    episodes that succeeded, d moves by `gain` (share - `target`), by `step` at most, from 0 to the highest level. Tasks
    are of the two levels beside d, d in the mean.

    An active environment retires, and the next that waits takes its place, where for `patience` visits in a row all of
    its episodes failed, or d was the highest level, or where over the last `window` visits d did not rise (its slope by
    least squares). Once all have retired, all begin anew where they are. For tasks that are `Environments`.

    Source: arXiv 2601.04809, and `DifficultyControl` of molumolua/SCALER.
    """

    target: Share = 0.5
    """The share of episodes that should succeed (tau)."""
    gain: Positive = 2.0
    """Levels that d moves by for a share that is off by 1 (beta)."""
    step: Positive = 1.0
    """Most levels that d moves by in a visit."""
    active: Count = 64
    """Most environments that are visited in an iteration."""
    retiring: bool = True
    """Whether environments retire; if not, the first `active` ones are visited throughout."""
    patience: Count = 5
    """Visits in a row that were all failures, or all at the highest level."""
    window: Annotated[int, Field(ge=2, le=1000)] = 10
    """Visits over which d has to rise."""

    def check(self, source: Tasks) -> None:
        if not isinstance(source, Environments):
            raise ConfigError(
                f"curriculum {self.type_name()} moves the levels of environments, and tasks {type(source).__name__} have "
                "none; take tasks.type=environments, a task source a level"
            )

    def draw(self, source: Tasks, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        assert isinstance(source, Environments)  # `check`
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

    def is_spent(self, visits: Sequence[Sequence[float]], top: int) -> bool:
        """Whether an environment with levels 0 to `top` retires after visits of these [level, share], the oldest
        first."""
        newest = visits[-self.patience :]
        if len(newest) == self.patience and (
            all(share == 0 for _, share in newest) or all(level == top for level, _ in newest)
        ):
            return True
        levels = [level for level, _ in visits[-self.window :]]
        return len(levels) == self.window and linear_regression(range(self.window), levels).slope <= 0

    def _move(self, source: Environments, memory: dict[str, Any], shares: Mapping[str, float]) -> None:
        """Takes in the visits of one more iteration."""
        level, visits, active = memory["level"], memory["visits"], memory["active"]
        top = {name: len(levels) - 1 for name, levels in source.levels.items()}
        for name, share in shares.items():
            visits.setdefault(name, []).append([level[name], share])
            move = min(max(self.gain * (share - self.target), -self.step), self.step)
            level[name] = min(max(level[name] + move, 0.0), float(top[name]))
        if not self.retiring:
            return
        for name in [name for name in active if self.is_spent(visits.get(name, ()), top[name])]:
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

"""Schedules that go by what came before.

What always holds: as in `curriculum.schedules`; what a schedule keeps is in `Experience.memory`, which is saved in the
checkpoint, and moves once an iteration.
"""

from abc import abstractmethod
from itertools import takewhile
from typing import Any

from longstride.core.errors import ConfigError
from longstride.core.experience import Experience
from longstride.core.numbers import Count, Share
from longstride.core.task import Difficulty
from longstride.curriculum.schedules import Growing


class Adaptive(Growing):
    """A limit that goes by the episodes of earlier iterations."""

    @property
    def adaptive(self) -> bool:
        return True

    def most(self, iterations: int, difficulty: Difficulty = "easy") -> int:
        return self.limit

    def at(self, iteration: int, difficulty: Difficulty = "easy", experience: Experience | None = None) -> int:
        if experience is None:
            raise ConfigError(
                f"{self.type_name()} goes by the episodes of earlier iterations, and here there are none; take a "
                "schedule of the iteration alone, such as multiplicative"
            )
        return self.after_episodes(iteration, difficulty, experience)

    @abstractmethod
    def after_episodes(self, iteration: int, difficulty: Difficulty, experience: Experience) -> int:
        """The limit, as `at` gives it, where there are episodes to go by."""


class OnPlateau(Adaptive):
    """Grows by `step` where success in training has stopped rising: `patience` iterations in a row were no better than
    the best at this limit so far. It is what is done by hand where a limit is raised as the curve flattens, and the
    rule by which a learning rate is lowered on a plateau (`torch.optim.lr_scheduler.ReduceLROnPlateau`).

    Success is the share of an iteration's episodes that succeeded, of all difficulties, failed ones left out; an
    iteration without any says nothing. The first iteration at a new limit is its first best.
    """

    step: Count
    """What is added."""
    patience: Count = 2
    """Iterations in a row without a better one."""
    better: Share = 0.01
    """How far success has to be above the best to be better."""

    def after_episodes(self, iteration: int, difficulty: Difficulty, experience: Experience) -> int:
        memory = experience.memory(self)
        if not memory:
            memory |= {"limit": self.start, "best": None, "waited": 0}
        if memory.get("iteration") != iteration:
            self._move(memory, _success(experience, iteration - 1))
            memory["iteration"] = iteration
        return memory["limit"]

    def _move(self, memory: dict[str, Any], success: float | None) -> None:
        """Takes in the success of one more iteration."""
        if success is None:
            return
        if memory["best"] is None or success > memory["best"] + self.better:
            memory |= {"best": success, "waited": 0}
            return
        memory["waited"] += 1
        if memory["waited"] >= self.patience:
            memory |= {"limit": min(memory["limit"] + self.step, self.limit), "best": None, "waited": 0}


def _success(experience: Experience, iteration: int) -> float | None:
    """The share of successes among the episodes of an iteration that did not fail; None without any."""
    newer = takewhile(lambda r: r.iteration >= iteration, reversed(experience.records))
    played = [r.success for r in newer if r.iteration == iteration and not r.stop.failed]
    return sum(played) / len(played) if played else None

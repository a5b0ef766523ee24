"""Tasks that are read from files whole, and divided: what data sets and folders of tasks have in common."""

import functools
import random
import warnings
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar, Literal

from longstride.core.errors import LongstrideWarning, TaskError
from longstride.core.numbers import Share
from longstride.core.seeds import derive
from longstride.core.task import Task, split_of
from longstride.envs.base import TaskSource


class KeptTasks(TaskSource):
    """Family: all tasks of a place. Which of them are held out goes by the hash of their template."""

    PARTS: ClassVar[str] = "tasks"
    """What the place has, in messages."""

    path: Path
    """Where the tasks are."""
    test_path: Path | None = None
    """Where those of evaluation are; left out, a share is held out."""
    test_share: Share = 0.1
    """Share that is held out, where there is no `test_path`."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return rng.choices(self._of("train"), k=n)

    def held_out(self, n: int) -> list[Task]:
        found = self._of("test")
        if n > len(found):
            warnings.warn(
                f"{self.test_path or self.path} has {len(found)} held-out {self.PARTS}, and {n} tasks were asked for: "
                "all of them are taken; hold more out with tasks.test_share",
                LongstrideWarning,
                stacklevel=2,
            )
        return found[:n]

    @abstractmethod
    def _read(self, path: Path) -> list[Task]:
        """All tasks of a place."""

    @functools.cached_property
    def _tasks(self) -> dict[str, list[Task]]:
        tasks = self._read(self.path)
        if self.test_path is not None:
            held = self._read(self.test_path)
            trained = {task.goal for task in tasks}
            if self.test_path != self.path and (both := sum(task.goal in trained for task in held)):
                text = f"{both} of the {len(held)} {self.PARTS} of {self.test_path} are asked in {self.path} too"
                warnings.warn(f"{text}: what is trained on is tested on", LongstrideWarning, stacklevel=2)
        else:
            splits = [split_of(task, self.test_share, 0) for task in tasks]
            held = [task for task, split in zip(tasks, splits, strict=True) if split == "test"]
            tasks = [task for task, split in zip(tasks, splits, strict=True) if split == "train"]
        held = [task.model_copy(update={"split": "test"}) for task in held]
        held.sort(key=lambda task: derive(0, "held-out", task.id))  # a file may have its easy rows first
        return {"train": tasks, "test": held}

    def _of(self, split: Literal["train", "test"]) -> list[Task]:
        if not self._tasks[split]:
            wanted = "evaluate on: set tasks.test_share or tasks.test_path" if split == "test" else "train on"
            raise TaskError(f"{self.path} has no {self.PARTS} to {wanted}")
        return self._tasks[split]

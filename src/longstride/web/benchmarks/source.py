"""A file of somebody else's benchmark as a task source.

What always holds: training and evaluation share no template; a file's own test split stays the test split unless a
share is asked for.
"""

import functools
import random
from pathlib import Path
from typing import Literal

from longstride.core.errors import TaskError
from longstride.core.numbers import CountOrZero, Share
from longstride.core.task import Task, split_of
from longstride.envs.base import TaskSource
from longstride.envs.sites.env import Window
from longstride.web.benchmarks.env import BenchmarkEnv
from longstride.web.benchmarks.tti_files import read_tti
from longstride.web.benchmarks.webarena import read_webarena
from longstride.web.benchmarks.webgym import read_webgym, subtasks
from longstride.web.benchmarks.webvoyager import read_webvoyager


class WebBenchmark(TaskSource):
    """Tasks of WebArena, WebVoyager, WebGym or TTI, done in Chromium on the sites that they name."""

    path: Path
    """The benchmark's file."""
    format: Literal["webarena", "webvoyager", "webgym", "tti"]
    """Whose form it has; `webarena` is WebArena-Lite's, too."""
    hosts: dict[str, str] = {}
    """Where the sites are: see `read_webarena`."""
    references: Path | None = None
    """WebVoyager's file of reference answers."""
    blocked: tuple[str, ...] = ()
    """Hosts of WebGym whose tasks are left out, because they turn agents away."""
    also: tuple[str, ...] = ()
    """Sites that pages may contact besides those of the task's addresses: `name:port`, or `name` for its ports 80 and
    443. A private address has to be named itself (`10.0.0.5:7770`)."""
    logins: Path | None = None
    """Folder of the logins that tasks name."""
    test_share: Share | None = None
    """Share of the templates that are held out; None takes the file's own split."""
    parts: CountOrZero = 0
    """Most sub-tasks that each training task's rubric is taken apart into (WebGym's decomposition)."""
    window: Window = 60
    """Lines of a page that are seen at once."""

    @property
    def at_once(self) -> int:
        return 8

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        tasks = self._of("train")
        return rng.choices(
            [*tasks, *(part for t in tasks for part in subtasks(t, self.parts))] if self.parts else tasks, k=n
        )

    def held_out(self, n: int) -> list[Task]:
        return self._of("test")[:n]

    def env(self) -> BenchmarkEnv:
        return BenchmarkEnv(self.also, self.logins, self.window)

    def _of(self, split: Literal["train", "test"]) -> list[Task]:
        tasks = [t for t in _load(self.as_key()) if t.split == split]
        if not tasks:
            raise TaskError(
                f"{self.path} has no tasks of the split {split!r}; hold templates out: tasks.test_share=0.2"
            )
        return tasks

    def as_key(self) -> "_Key":
        """What the file's tasks depend on."""
        return self.path, self.format, tuple(sorted(self.hosts.items())), self.references, self.blocked, self.test_share


_Key = tuple[Path, str, tuple[tuple[str, str], ...], Path | None, tuple[str, ...], float | None]


@functools.lru_cache(maxsize=8)
def _load(key: _Key) -> tuple[Task, ...]:
    path, form, hosts, references, blocked, share = key
    if form == "webgym":
        tasks = read_webgym(path, blocked)
    elif form == "webvoyager":
        tasks = read_webvoyager(path, dict(hosts), references)
    else:
        tasks = (read_webarena if form == "webarena" else read_tti)(path, dict(hosts))
    if share is None:
        return tuple(tasks)
    return tuple(t.model_copy(update={"split": split_of(t, share, 0)}) for t in tasks)

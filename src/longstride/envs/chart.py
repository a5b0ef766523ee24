"""A task as a chart: all pages that an episode may come to, as data, so that it can be played where no Python is.

What always holds: who plays a chart follows links by their numbers, goes back and home over pages that were open, and
answers; an action that leaves the visitor where it was costs a turn, which the last line of the next observation says
(`envs.dial.env` is the model: a test compares the two, action by action).
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from longstride.core.task import Task

MOST_PAGES = 5_000
"""Of a task that is charted."""


@dataclass(frozen=True, slots=True)
class ChartPage:
    """A page."""

    text: str
    """What is read."""
    links: tuple[int, ...]
    """Of each element, by its number from 1, the page that it leads to; its own page where it leads nowhere."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A task."""

    goal: str
    pages: tuple[ChartPage, ...]
    """The first one is where the episode begins, and what `home` opens."""
    answer: str
    """The right one."""
    distance: int | None
    """Goal distance, where it is known."""


@runtime_checkable
class Charted(Protocol):
    """A task source whose tasks can be charted."""

    def chart(self, task: Task) -> Chart | None:
        """All pages of a task; None where they are more than `MOST_PAGES`.

        Raises:
            TaskError: it is of another source.
        """
        ...

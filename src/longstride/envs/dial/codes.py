"""Trails on which something has to be remembered: the answer is several codes, most of which stand on the way.

    read help [1]
    # folder
    code 42
    in amber castle
    ...

What always holds: the next action is decided by the newest page alone, as on any trail; the answer is not, and the
farther the goal, the longer ago its first part was seen.
"""

import random

from longstride.core.task import Task
from longstride.envs.dial.tasks import Dial
from longstride.envs.dial.trail import CODE, Codes, Trail
from longstride.envs.text import MARK


class DialCodes(Dial):
    """Trails whose answer is all codes that stand on the way, in their order."""

    codes: Codes = 3
    """How many; a way with fewer pages has fewer."""

    def demonstrate(self, task: Task) -> list[str]:
        """A shortest solution: `task.optimal` texts. Raises: TaskError for a task of another source."""
        return [*super().demonstrate(task)[:-1], f"{MARK} answer {Trail.of(task).answer}"]

    def note(self, task: Task, turn: int) -> str:
        """What is to be remembered of a shortest solution when its turn, from 0, is said (see `envs.base.Noting`)."""
        trail = Trail.of(task)
        codes = [code for place, code in trail.noted.items() if place <= turn]
        return " ".join([CODE, *codes, *[trail.code] * trail.is_last((turn,))])

    def _trail(self, rng: random.Random, distance: int, held_out: bool) -> Trail:
        return super()._trail(rng, distance, held_out).model_copy(update={"codes": self.codes})

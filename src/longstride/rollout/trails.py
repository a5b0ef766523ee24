"""What is measured of an episode on a trail of pages (`envs.dial`) besides what is measured of every episode; of one
elsewhere nothing."""

from longstride.core.trajectory import Trajectory
from longstride.envs.dial import Habits
from longstride.rollout.summary import Measure


class Wasted(Measure):
    """Share of an episode's turns that brought it no nearer to its goal than it was before."""

    def __call__(self, trajectory: Trajectory) -> float | None:
        return Habits.of([trajectory]).table()["wasted"] if _on_a_trail(trajectory) else None


class Misread(Measure):
    """Share of the names and codes that an episode copied wrongly: new words, and no habit of wandering."""

    def __call__(self, trajectory: Trajectory) -> float | None:
        return Habits.of([trajectory]).misreads if _on_a_trail(trajectory) else None


def _on_a_trail(trajectory: Trajectory) -> bool:
    return "/dial/" in f"/{trajectory.task.source}"

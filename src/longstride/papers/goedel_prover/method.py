"""Whole answers beside corrections and subgoals of failed ones (`Corrections`), and the groups that teach (`PassRate`)."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Share
from longstride.core.task import Task
from longstride.core.trajectory import EpisodeRecord, Trajectory, by_group
from longstride.methods import OnPolicy
from longstride.rollout.episode import PastTurn, Plan
from longstride.rollout.planning import Planner, Sampler, Stages
from longstride.rollout.summary import Measure


@runtime_checkable
class Divisible(Protocol):
    """A task source that knows what a failed attempt leaves to be done."""

    def subgoal(self, task: Task, text: str) -> Task | None:
        """See `PuzzleSource.subgoal`."""
        ...


class Corrections(Sampler):
    """Half of the groups are first attempts, half go on from those that failed (section 2.3): with the attempt and what the
    verifier said of it as history, which are read and not trained, or at what it left to be done, as a task of its own
    (section 2.2, extract_goal). Where fewer failed there are fewer groups. For `envs.puzzles.Corrected`."""

    subgoals: Share = 0.0
    """Of the second half that are subgoals, as far as there are any."""

    def plan(self, planner: Planner) -> Stages:
        """Raises: ConfigError where subgoals are wanted and the tasks know of none."""
        if self.subgoals and not isinstance(planner.source, Divisible):
            raise ConfigError(
                "sampler.subgoals takes tasks apart, and these have no `subgoal`: set it to 0, or write one (a task and a "
                "failed text to what is left to be done)"
            )
        second = planner.groups // 2
        first = [_limited(task, 1) for task in planner.tasks(planner.groups - second)]
        played = yield [plan for task in first for plan in planner.group(task, role="whole")]
        failed = [t for group in by_group(played) for t in group if t.turns and not (t.success or t.stop.failed)]
        failed = list({t.group: t for t in reversed(failed)}.values())[::-1]  # the first of each group
        onward: list[Plan] = []
        goals = round(self.subgoals * second)
        for t in failed:
            if len(onward) >= second * planner.size:
                break
            goal = (
                planner.source.subgoal(t.task, t.turns[-1].text)
                if goals and isinstance(planner.source, Divisible)
                else None
            )
            if goal is None:
                history, task = PastTurn.of(t.turns), _limited(t.task, t.length + 1)
                onward += planner.group(task, history=history, role="correction", like=t)
            else:
                goals -= 1
                onward += planner.group(_limited(goal, 1), role="subgoal")
        return [*played, *((yield onward) if onward else [])]


def _limited(task: Task, attempts: int) -> Task:
    """The task with so many attempts."""
    return task.model_copy(update={"horizon": attempts})


class PassRate(OnPolicy):
    """`OnPolicy` of the groups that were solved at least once, and at most so often (section 2.3, dynamic sampling)."""

    most: Share = 0.75
    """Largest share of successes."""

    def teaches(self, group: Sequence[EpisodeRecord]) -> bool:
        return 0 < sum(episode.success for episode in group) / len(group) <= self.most


class SolvedWithin(Measure):
    """Whether a task was solved in so many turns."""

    turns: Count = 1
    """Attempts that count."""

    @property
    def name(self) -> str:
        return f"within_{self.turns}_attempts"

    def __call__(self, trajectory: Trajectory) -> float:
        return float(trajectory.success and trajectory.length <= self.turns)

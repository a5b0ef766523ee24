"""Episodes that begin in summaries of an exploring one (`SummaryStates`)."""

from longstride.core.numbers import Count
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.rollout.planning import Planner, Sampler, Stages


class SummaryStates(Sampler):
    """One episode of a task explores, under the recipe's horizon; then a group of one turn each begins in some of the
    states that it saw, the start among them: training on one round of an iterated decoder.

    A group has one task and one state, so that what is compared began alike; a state is what an episode of the same
    iteration saw before one of its turns, and nothing else of that episode is left. For environments in which a task's
    `start` is an observation to begin with (`envs.puzzles.Iterated`).
    """

    states: Count = 2
    """Most states of a task, drawn without replacement (N_summ = 2 in the paper)."""

    def plan(self, planner: Planner) -> Stages:
        tasks = planner.tasks(max(1, planner.groups // self.states))
        explored = yield [plan for task in tasks for plan in planner.group(task, 1, role="explore")]
        starts = [start for t in explored if not t.stop.failed for start in self._starts(t, planner)]
        return explored + (yield [plan for task in starts for plan in planner.group(task, role="step")])

    def _starts(self, trajectory: Trajectory, planner: Planner) -> list[Task]:
        """The task of an episode, to be begun in states that it saw and to be ended after a turn."""
        seen = list(dict.fromkeys(turn.observation for turn in trajectory.turns))
        chosen = planner.rng.sample(seen, min(self.states, len(seen)))
        task = trajectory.task
        return [task.model_copy(update={"start": state or task.start, "horizon": 1}) for state in chosen]

"""Single turns that go on from earlier episodes (`PartialHistories`)."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile
from statistics import pvariance

from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Share
from longstride.core.task import Task
from longstride.core.trajectory import EpisodeRecord
from longstride.rewards import Verdict
from longstride.rollout.episode import PastTurn, Plan, set_verdict
from longstride.rollout.planning import Planner, Sampler, Stages

BEGUN, GOING_ON = "begun", "going_on"
"""Roles of groups that begin a task, and of those that go on from an earlier episode."""
UNPARSED = "its own turn could not be parsed, so no answer of its history counts"


class PartialHistories(Sampler):
    """Every episode has one turn of its own: the first of a task, or the one after all turns of an episode of an earlier
    iteration, which are taken again, read and not trained. So histories grow by a turn each time; where the budget has no
    turn left, the task begins anew.

    An earlier group is chosen in proportion to the variance of its rewards, which says how much its task and history
    taught, and of its episodes any one. What went on is a group like any other, and may be gone on from itself. For
    environments in which an answer can be improved on: they end where the task's `horizon` says, which is set here.

    An episode whose own turn could not be parsed is no success and earns nothing, though an answer of its history counts
    where the environment holds it: otherwise saying nothing would be paid after a right history.
    """

    share: Share = 0.5
    """Of the groups that go on, once there are any to go on from."""
    recent: Count = 4
    """Iterations whose groups are gone on from."""
    prioritised: bool = True
    """Whether by the variance of their rewards; if not, all of these groups are as likely."""

    def plan(self, planner: Planner) -> Stages:
        stored = self._stored(planner)
        weights = [self._weight(group) for group in stored]
        more = round(self.share * planner.groups) if any(weights) else 0
        chosen = [planner.rng.choice(group) for group in planner.rng.choices(stored, weights, k=more)] if more else []
        plans = [plan for task in planner.tasks(planner.groups - more) for plan in self._begin(planner, task)]
        for t in planner.experience.read(chosen):
            if t.length < planner.budget(t.task).turns:
                task, history = _ending_after(t.task, t.length + 1), PastTurn.of(t.turns)
                plans += planner.group(task, history=history, role=GOING_ON, like=t)
            else:
                plans += self._begin(planner, t.task)
        if planner.budget(plans[0].task).turns < 2:
            raise ConfigError(
                f"sampler {self.type_name()} goes on after an answer, and episodes may take one turn; raise budget.turns, "
                "in an environment where an answer can be improved on, such as tasks.type=iterated"
            )
        played = yield plans
        for t in played:
            if not t.stop.failed and all(turn.action is None for turn in t.turns[t.history :]):
                set_verdict(t, Verdict(min(t.reward, 0.0) - t.earned, False, evidence={"note": UNPARSED}))
        return played

    def _begin(self, planner: Planner, task: Task) -> list[Plan]:
        return planner.group(_ending_after(task, 1), role=BEGUN)

    def _stored(self, planner: Planner) -> list[list[EpisodeRecord]]:
        """The groups of recent iterations, without episodes that failed."""
        found: defaultdict[int, list[EpisodeRecord]] = defaultdict(list)
        oldest = planner.iteration - self.recent
        for record in takewhile(lambda record: record.iteration >= oldest, reversed(planner.experience.records)):
            if not record.stop.failed:
                found[record.group].append(record)
        return [found[group] for group in sorted(found)]

    def _weight(self, group: Sequence[EpisodeRecord]) -> float:
        return pvariance([record.reward for record in group]) if self.prioritised else 1.0


def _ending_after(task: Task, turns: int) -> Task:
    return task.model_copy(update={"horizon": turns})

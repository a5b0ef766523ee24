"""Reward for beating another policy (`Against`): what a best response to it is trained by."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import fmean

from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.rewards import ByReward, Preference, TaskReward, Verdict
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore
from longstride.run.experiment import check_run_folder


class Against(TaskReward):
    """The mean chance to be preferred to what another policy answered to the same task, in episodes that it played. By
    how much this comes to more than 1/2 is how far that policy can be beaten, at least."""

    run: Path
    """Folder of a run in which the other policy played the same tasks: with the same `seed`, and `learner.epochs=0`."""
    preference: Preference = ByReward()
    """Who says which is better."""

    def compare(self, group: Sequence[Trajectory]) -> list[Verdict]:
        rivals = played_in(self.run).get(group[0].task.id)
        if not rivals:
            raise ConfigError(
                f"{self.run} has no episode of task {group[0].task.id!r}, which is to be played against it; play the "
                "other policy with the same tasks, seed, group_size, episodes_per_iteration and iterations"
            )
        chances = self.preference([(t, rival) for t in group for rival in rivals])
        verdicts = []
        for k, t in enumerate(group):
            known = [c for c in chances[k * len(rivals) : (k + 1) * len(rivals)] if c is not None]
            won = fmean(known) if known else 0.5
            verdicts.append(Verdict(won - t.earned, t.success, t.terms | {"task": t.reward}, t.evidence))
        return verdicts


@cache
def played_in(run: Path) -> dict[str, list[Trajectory]]:
    """The episodes of a run that did not fail, by task; what they earned there is what their task gave."""
    check_run_folder(run)
    found = defaultdict[str, list[Trajectory]](list)
    for t in TrajectoryStore(run / TRAJECTORIES):
        if not t.stop.failed:
            t.reward = t.terms.get("task", t.reward)
            found[t.task.id].append(t)
    return found

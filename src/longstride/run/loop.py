"""The one loop: plan -> roll out -> reward -> assign credit -> update, an evaluation, a checkpoint.

What always holds: a resumed run gives the numbers of one that was not stopped; a failed episode is counted and never
trained on; the run folder holds the last complete iteration whenever the process ends, however it ends.
"""

from collections.abc import Sequence
from pathlib import Path

from longstride.core.component import apart
from longstride.core.errors import EnvFailure, JudgeFailure, OwnCodeError
from longstride.core.foreign import staying
from longstride.core.implementation import implements
from longstride.core.trajectory import Trajectory, by_group
from longstride.learner import parallel
from longstride.rewards import Reward, Verdict
from longstride.rollout.episode import set_failure, set_verdict
from longstride.rollout.interface import checked_verdict
from longstride.run.folder import RunFolder
from longstride.run.listener import Listener, Silent
from longstride.run.memory import check_memory, explained
from longstride.run.patience import Patience
from longstride.run.placement import Placement, ThisProcess
from longstride.run.recipe import Recipe
from longstride.run.session import Session


@implements(Recipe)
def train(
    recipe: Recipe,
    folder: Path,
    listener: Listener | None = None,
    resume: bool = False,
    placement: Placement | None = None,
) -> None:
    """See `Experiment.train`; a recipe may go on for more `iterations`."""
    recipe = apart(recipe.settled(placement))
    check_memory(recipe)
    with parallel.joined(), (placement or ThisProcess()).place(recipe) as placed:
        run = RunFolder(recipe, folder, listener or Silent(), resume)
        with run.undone_before_the_start(), explained(run), Session(recipe, run, placed) as session:
            _loop(recipe, session)


def _loop(recipe: Recipe, session: Session) -> None:
    patience = Patience(recipe)
    if session.run.checkpoint is None:
        if recipe.evaluation.start:
            session.evaluate()
        session.save()
    for i, trajectories in session.rollouts():  # plan, roll out
        now = recipe.at(i)
        if not recipe.stored_run:  # stored episodes were compared before they were stored
            compare(recipe.reward, trajectories)
        chosen = session.replay(i, trajectories)
        samples, metrics = session.assign_credit(now, chosen)
        metrics |= session.update(now, samples, chosen)
        session.report(trajectories, metrics)
        patience.trained(i, trajectories, chosen, metrics)
        if i % recipe.evaluation.every == 0 or i == recipe.iterations:
            session.evaluate()
        session.save()
        patience.check()


def compare(reward: Reward, trajectories: list[Trajectory]) -> None:
    """Rewards episodes beside their siblings, where the reward compares them; each was rewarded for itself when it
    ended. A group whose comparison failed has failed. Of several processes each compares a share of the groups: a judge
    is asked once, and what it took is known where it was asked."""
    groups = by_group(trajectories)
    mine = [(_compared(reward, group), [t.judge_usage for t in group]) for group in parallel.scatter(groups)]
    compared = parallel.unscatter(mine)
    for group, (found, usage) in zip(groups, compared, strict=True):
        for trajectory, taken in zip(group, usage, strict=True):
            trajectory.judge_usage = taken
        if isinstance(found, str):
            for trajectory in group:
                set_failure(trajectory, found, trajectory.length)
            continue
        for trajectory, verdict in zip(group, found, strict=False):
            set_verdict(trajectory, verdict)


def _compared(reward: Reward, group: Sequence[Trajectory]) -> list[Verdict] | str:
    """New verdicts for the episodes of a group, none where they stay; or why they could not be had.

    Raises:
        OwnCodeError: they are no verdicts, or not one an episode.
    """
    try:
        with staying(lambda: type(reward).__name__):
            found = reward.compare(group)
    except (EnvFailure, JudgeFailure) as e:
        return str(e)
    if found is None:
        return []
    if len(found) != len(group):
        raise OwnCodeError(f"{type(reward).__name__}: compare gives {len(found)} verdicts for {len(group)} episodes")
    return [checked_verdict(verdict, reward) for verdict in found]

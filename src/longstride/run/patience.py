"""Iterations that lead nowhere: every episode failed, or nothing was trained. Each is said at once, with its first
cause, and a run that has too many of them in a row is given up. Prompts that fill the model's context are said once.

What always holds: nothing here changes a number of the run; where nothing is to be trained (`learner.epochs=0`, a
critic that learns alone, demonstrations beside) only failures count.
"""

import warnings
from collections.abc import Sequence
from typing import Any

from longstride.core.errors import LongstrideWarning, RunError
from longstride.core.trajectory import StopReason, Trajectory
from longstride.run.agreement import warn_of_gap
from longstride.run.recipe import Recipe


class Patience:
    """Watches the iterations of a run, `recipe.patience` of which may lead nowhere in a row."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._causes: list[str] = []
        """Why the newest iterations led nowhere."""
        self._warned_of_room = False

    def trained(
        self, iteration: int, trajectories: Sequence[Trajectory], chosen: Sequence[Trajectory], metrics: dict[str, Any]
    ) -> None:
        """Judges an iteration by what was played, what of all episodes was chosen, and the metrics of the update, and
        warns where it led nowhere."""
        self._warned_of_room = self._warned_of_room or warn_of_room(f"iteration {iteration}", trajectories)
        warn_of_gap(self._recipe, iteration, chosen, metrics.get("sampling_gap", 0.0))
        cause = warn_of_failures(f"iteration {iteration}", trajectories)
        if not cause and self._was_to_train(iteration) and not metrics.get("trained_tokens"):
            cause = _warn(f"iteration {iteration}: nothing was trained: {_why(trajectories, chosen)}")
        elif not cause and metrics.get("steps") and metrics.get("skipped") == metrics["steps"]:
            cause = _warn(
                f"iteration {iteration}: nothing was trained: all {metrics['steps']} steps were skipped, as their loss "
                "or gradient is no number; look at what rewards and credit give, then at learner.lr"
            )
        self._causes = [*self._causes, cause] if cause else []

    def check(self) -> None:
        """Gives the run up where too many iterations in a row have led nowhere.

        Raises:
            RunError: they have.
        """
        if len(self._causes) >= self._recipe.patience:
            raise RunError(
                f"{len(self._causes)} iterations in a row led nowhere; {self._causes[0]}. All of them are kept: mend "
                f"the cause and resume the run, or resume it with a larger patience than {self._recipe.patience}"
            )

    def _was_to_train(self, iteration: int) -> bool:
        r = self._recipe
        alone = r.critic is not None and iteration <= r.critic.warmup
        return r.learner.epochs > 0 and not alone and r.imitation is None


def warn_of_failures(what: str, trajectories: Sequence[Trajectory]) -> str:
    """Warns where every one of some episodes failed, and returns the warning; `what` names them."""
    if not trajectories or not all(t.stop.failed for t in trajectories):
        return ""
    first = trajectories[0].evidence
    cause = f"{first.get('failure')} (task {first.get('task')}, turn {first.get('turn')})"
    return _warn(f"{what}: all {len(trajectories)} episodes failed; the first: {cause}")


def warn_of_room(what: str, trajectories: Sequence[Trajectory]) -> bool:
    """Warns where prompts left the policy no room to say anything, and returns whether; `what` names the episodes."""
    full = [t for t in trajectories if t.stop is StopReason.CONTEXT and not t.turns]
    if full:
        _warn(
            f"{what}: {len(full)} of {len(trajectories)} episodes have no turn, as their prompts fill the context of "
            f"the model, and count as not solved; the first: task {full[0].task.id!r}. Shorten such prompts or leave "
            "them out"
        )
    return bool(full)


def _why(trajectories: Sequence[Trajectory], chosen: Sequence[Trajectory]) -> str:
    """Why an update had no tokens, as far as it can be seen."""
    played = [t for t in trajectories if not t.stop.failed]
    rewards = {t.reward for t in played}
    solved = sum(t.success for t in played)
    seen = f"{solved} of {len(played)} episodes were successes" + (
        f", and every reward is {rewards.pop():g}" if len(rewards) == 1 else ""
    )
    if not chosen:
        return f"replay chose no episode; {seen}"
    return f"credit gives no token of {len(chosen)} episodes a weight; {seen}"


def _warn(message: str) -> str:
    warnings.warn(message, LongstrideWarning, stacklevel=3)
    return message

"""What distillation on what the policy samples adds: a credit that weighs nothing (`NoAdvantage`), and the order in which a
demonstration's last turns come first (`BackToFront`)."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.curriculum import Schedule
from longstride.envs.base import Solver
from longstride.methods import Advantage, Credit
from longstride.rollout.episode import PastTurn, Plan
from longstride.rollout.planning import Planner, Sampler, Stages


class NoAdvantage(Credit):
    """Every turn weighs 0, whatever its episode earned: what is trained is the loss's own term, a `KL` to a `Teacher`."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        return [[0.0] * t.length for t in played]


class BackToFront(Sampler):
    """The first turns of a solution are taken, and the student goes on from there: at first from the last turn, then from
    ever earlier ones, at last from the start. Turns that are taken are read, never trained, and count in the budget.

    For tasks that know their solutions. A solution of n turns is taken up to turn n - `left`; one that is no longer than
    that is not shown.
    """

    adaptive: ClassVar[bool] = False

    left: Schedule
    """Turns of the solution that are left to the student, by iteration and difficulty (not by what came before); the
    budget says how many it may take."""

    def plan(self, planner: Planner) -> Stages:
        return (yield list(self._plans(planner)))

    def _plans(self, planner: Planner) -> Iterator[Plan]:
        source = planner.source
        if not isinstance(source, Solver):
            raise ConfigError(
                f"sampler back_to_front takes the first turns of a solution, and tasks {type(source).__name__} know none "
                "(they have no `demonstrate`); take dial, or sampler.type=groups with a budget that grows"
            )
        for task in planner.tasks(planner.groups):
            said = source.demonstrate(task)
            left = self.left.limit_at(planner.iteration, task.difficulty)
            history = [PastTurn(text, tuple(planner.chat.encode(text))) for text in said[: max(0, len(said) - left)]]
            yield from planner.group(task, history=history)

"""Episodes that begin inside a solution where none succeeds from the start (`OraclePrefix`)."""

import warnings

from pydantic import Field

from longstride.core.errors import ConfigError, LongstrideWarning
from longstride.core.numbers import Count, Share
from longstride.core.trajectory import Trajectory, by_group
from longstride.envs.base import Solver
from longstride.envs.text import STEP_END
from longstride.rollout.branching import Codec, cuts
from longstride.rollout.planning import Planner, Sampler, Stages

GUIDED = "guided"
"""Role of an episode that begins with a part of a solution."""


class OraclePrefix(Sampler):
    """A task of which no episode succeeds is played again from the beginning of a solution, as short a beginning as leads
    to a success.

    Beginnings are tried from the shortest on, a group each, until a group has a success; that group is the guided one,
    and those before it teach nothing (all their rewards are equal). So the search costs no episodes beside those that
    are trained on, but for its failures.
    """

    share: Share = Field(default=0.25, gt=0, lt=1)
    """Largest part of the solution's steps that is shown."""
    checkpoints: Count = 4
    """How many beginnings there are, uniformly spaced up to `share`; fewer where the solution is short."""
    mark: str = STEP_END
    """The token that divides the steps of a solution."""
    unguided: bool = True
    """Whether tasks are played without guidance first; if not, every task is guided."""

    def plan(self, planner: Planner) -> Stages:
        source = planner.source
        if not isinstance(source, Solver):
            raise ConfigError(
                f"sampler {self.type_name()} shows the beginning of a solution, and tasks {type(source).__name__} know "
                "none (they have no `demonstrate`); take modular_chain or countdown"
            )
        played: list[Trajectory] = []
        tasks = planner.tasks(planner.groups)
        if self.unguided:
            played += yield [plan for task in tasks for plan in planner.group(task)]
            tasks = [group[0].task for group in by_group(played) if not any(t.success for t in group)]
        unsolved = [(task, self.beginnings(planner.chat, source.demonstrate(task)[0])) for task in tasks]
        if planner.iteration == 1 and unsolved and not any(shown for _, shown in unsolved):
            text = (
                f"no solution of the {len(unsolved)} tasks that are hard has {self.mark!r} in it, so nothing is guided; set "
                "sampler.mark to what divides the steps of solutions"
            )
            warnings.warn(text, LongstrideWarning, stacklevel=2)
        for n in range(self.checkpoints):
            unsolved = [(task, shown) for task, shown in unsolved if n < len(shown)]
            groups = [planner.group(task, prefix=shown[n], role=GUIDED) for task, shown in unsolved]
            if not groups:
                break
            found = yield [plan for group in groups for plan in group]
            played += found
            solved = {t.group for t in found if t.success}
            unsolved = [u for u, group in zip(unsolved, groups, strict=True) if group[0].group not in solved]
        return played

    def beginnings(self, chat: Codec, solution: str) -> list[list[int]]:
        """The ids of the beginnings of a solution that may be shown, the shortest first: whole steps, never all."""
        ids = chat.encode(solution)
        ends = cuts(chat, ids, (self.mark,))
        wanted = {
            max(1, round(self.share * (len(ends) + 1) * n / self.checkpoints)) for n in range(1, self.checkpoints + 1)
        }
        return [ids[: ends[steps - 1]] for steps in sorted(wanted) if steps <= len(ends)]

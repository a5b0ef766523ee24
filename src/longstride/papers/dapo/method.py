"""What DAPO adds: `DynamicSampling`, `SoftOverlong`, `OverlongFiltered`."""

from collections.abc import Sequence
from typing import Any

from longstride.core.budget import StopReason
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory
from longstride.methods import GroupRelative, Sample
from longstride.rewards import TaskReward, Verdict
from longstride.rollout.planning import Planner, Sampler, Stages, by_group


class DynamicSampling(Sampler):
    """Groups until as many as the recipe asks for are mixed, some of their answers right and some wrong (section 3.2);
    those that are not are for credit to leave out."""

    rounds: Count = 10
    """Most stages; verl's default."""

    def plan(self, planner: Planner) -> Stages:
        played: list[Trajectory] = []
        lacking = planner.groups
        for _ in range(self.rounds):
            found = yield [plan for task in planner.tasks(lacking) for plan in planner.group(task)]
            played += found
            lacking -= len(mixed(found))
            if lacking <= 0:
                break
        return played


def mixed(trajectories: Sequence[Trajectory]) -> list[list[Trajectory]]:
    """The groups in which some answers are right and some wrong."""
    return [group for group in by_group(trajectories) if len({t.success for t in group}) > 1]


class SoftOverlong(TaskReward):
    """1 for a right answer and -1 for a wrong one, plus the soft overlong punishment of the answer's y tokens (equation
    13), with L the limit of the episode's budget and C = `cache`:

        0 if y <= L - C,  (L - C - y) / C if L - C < y <= L,  -1 beyond
    """

    cache: Count
    """Tokens before the limit over which the punishment rises."""

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        verdict = super().__call__(trajectory, state, seed)
        budget = trajectory.budget
        limit = min(budget.turn_tokens, budget.tokens or budget.turn_tokens)
        terms = {"outcome": 1.0 if verdict.success else -1.0, "overlong": self.punishment(trajectory, limit)}
        return Verdict(sum(terms.values()), verdict.success, terms, verdict.evidence)

    def punishment(self, trajectory: Trajectory, limit: int) -> float:
        """In [-1, 0]; a cut answer is beyond the limit."""
        if trajectory.stop is StopReason.TOKENS:
            return -1.0
        return min(0.0, max(-1.0, (limit - self.cache - trajectory.sampled_tokens) / self.cache))


class OverlongFiltered(GroupRelative):
    """Group-relative credit of mixed groups, without the samples of answers that the limit cut (section 3.4); these
    count in the mean of their group."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        cut = {t.ordinal for t in trajectories if t.stop is StopReason.TOKENS}
        trained = [t for group in mixed(trajectories) for t in group]
        return [sample for sample in super().__call__(trained) if sample.episode not in cut]

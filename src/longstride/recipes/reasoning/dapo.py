"""DAPO: decoupled clip and dynamic sampling. Yu et al., 2025, arXiv 2503.14476.

GRPO for long thoughts: groups that are all right or all wrong teach nothing, so others are sampled until the batch is
full; a clip that is wider above leaves unlikely tokens room to grow; every token counts the same; an answer that the
limit cut says nothing of its thought and is left out, and one that comes near the limit is punished a little more with
every token.

| place | choice | paper (Qwen2.5-32B, section 4.1) | here |
|---|---|---|---|
| plan | `DynamicSampling` | 16 answers a prompt, until 512 groups are mixed | 8, until 32 are, 4 stages at most |
| roll out | sampling | temperature 1 (verl's recipe), 20,480 tokens | temperature 1, 160 tokens |
| score | `SoftOverlong` | 1 or -1, less a penalty that rises to 1 over the last 4,096 tokens (equation 13) | the same, over the last 32 |
| credit | `OverlongFiltered` | (r - mean) / deviation; the loss of cut answers is masked (section 3.4) | the same, mixed groups only |
| update | `PPO`, `Mean` over tokens | clip 0.2 and 0.28, no KL | the same |
| update | steps, rate | 16 an iteration, 1e-6 | two passes in steps of 128 episodes, 3e-4 |

Deviations: the setup is `setups.puzzles`, with a model of half a million parameters; all that was sampled is stored and
counted, also what teaches nothing. The paper adds the penalty on top of the filter (table 1), and so does this.
"""

from collections.abc import Sequence
from typing import Any

from longstride.core.budget import StopReason
from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory
from longstride.methods import PPO, GroupRelative, Mean, Sample
from longstride.recipes.setups import puzzles
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


RECIPE = puzzles.recipe(
    "dapo",
    iterations=30,
    sampler=DynamicSampling(rounds=4),
    reward=SoftOverlong(cache=32),
    credit=OverlongFiltered(),
    loss=PPO(clip_high=0.28, aggregation=Mean(over="token")),
)

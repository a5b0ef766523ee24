"""DAPO: decoupled clip and dynamic sampling. Yu et al., 2025, arXiv 2503.14476.

GRPO for long thoughts: groups that are all right or all wrong teach nothing, so others are sampled until the batch is
full; a clip that is wider above leaves unlikely tokens room to grow; every token counts the same.

| place | choice | paper (Qwen2.5-32B, section 4.1) | here |
|---|---|---|---|
| plan | `DynamicSampling` | 16 answers a prompt, until 512 groups are mixed | 8, until 32 are, 4 stages at most |
| roll out | sampling | temperature 1 (verl's recipe), 20,480 tokens | temperature 1, 160 tokens |
| score | `TaskReward` | 1 or -1, less a soft penalty in the last 4,096 tokens | 1 or 0 |
| credit | `GroupRelative`, mixed groups only | (r - mean) / deviation | the same |
| update | `PPO`, `Mean` over tokens | clip 0.2 and 0.28, no KL | the same |
| update | steps, rate | 16 an iteration, 1e-6 | two passes in steps of 128 episodes, 3e-4 |

Deviations: model and tasks are those of `grpo`; an answer that is cut has no reward, and there is no penalty before
that; all that was sampled is stored and counted, also what teaches nothing.
"""

from longstride.core.numbers import Count
from longstride.core.trajectory import Trajectory
from longstride.methods import PPO, GroupRelative
from longstride.recipes.setups import puzzles
from longstride.rollout.planning import Planner, Sampler, Stages, by_group


class DynamicSampling(Sampler):
    """Groups until as many as the recipe asks for are mixed, their rewards not all equal (section 3.2); what teaches
    nothing is for credit to leave out (`drop_zero_variance`)."""

    rounds: Count = 10
    """Most stages; verl's default."""

    def plan(self, planner: Planner) -> Stages:
        played: list[Trajectory] = []
        lacking = planner.groups
        for _ in range(self.rounds):
            found = yield [plan for task in planner.tasks(lacking) for plan in planner.group(task)]
            played += found
            lacking -= sum(len({t.reward for t in group}) > 1 for group in by_group(found))
            if lacking <= 0:
                break
        return played


RECIPE = puzzles.recipe(
    "dapo",
    iterations=30,
    sampler=DynamicSampling(rounds=4),
    credit=GroupRelative(drop_zero_variance=True),
    loss=PPO(clip_high=0.28),
)

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

from longstride.methods import PPO, GroupRelative
from longstride.recipes import grpo
from longstride.rollout.planning import DynamicSampling

RECIPE = grpo.RECIPE.model_copy(
    update={
        "name": "dapo",
        "iterations": 30,
        "sampler": DynamicSampling(rounds=4),
        "credit": GroupRelative(mixed_only=True),
        "loss": PPO(high=0.28),
    }
)

"""ScalingInter-RL: GRPO under a horizon that grows in stages. Xi et al., 2025, "AgentGym-RL", arXiv 2509.08755.

First few turns, to learn to use what is known; then more, to explore. At many turns from the start training is reported to collapse after
a fast beginning, at few it stays where they end.

| place | choice | paper and released scripts | here |
|---|---|---|---|
| plan | groups of one task | 8 episodes (4 on WebArena), 32 tasks | 8, 32 |
| plan | `Staged` | WebArena 8, 12, 15 turns, every 80 updates; BabyAI 6, 13, 20, every 100 | 8, 16, 24, every 4; tests at 24 |
| roll out | sampling | temperature 1, 512 tokens a turn | temperature 1 |
| score | `TaskReward` | the environment's | programmatic, exact |
| credit | `GroupRelative` | (r - mean) / std over the group | the same |
| update | `PPO` | clip 0.2, mean over tokens, KL 1e-3 to the start | the same without KL |
| update | passes, rate | minibatches of 8 prompts, 2 epochs, 1e-6 | 2 epochs in 4 minibatches, 5e-4 |

Deviations: a model of about a million parameters on embedded sites; no KL term to the start (the loss has none yet).
"""

from longstride.algorithms import PPO, GroupRelative, Mean
from longstride.curriculum import Staged
from longstride.recipes import asyncwebrl
from longstride.rollout.pool import PoolConfig
from longstride.training.config import LearnerConfig

RECIPE = asyncwebrl.RECIPE.model_copy(
    update={
        "name": "scaling_inter",
        "horizon": Staged(stages=(8, 16, 24), every=4),
        "pool": PoolConfig(),
        "credit": GroupRelative(),
        "loss": PPO(aggregation=Mean(over="token")),
        "learner": LearnerConfig(lr=5e-4, warmup_steps=5, epochs=2, batch_samples=384),
    }
)

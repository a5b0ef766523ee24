"""ScalingInter-RL: GRPO under a horizon that grows in stages. Xi et al., 2025, "AgentGym-RL", arXiv 2509.08755.

First few turns, to learn to use what is known; then more, to explore. At many turns from the start training is reported to collapse after
a fast beginning, at few it stays where they end.

| place | choice | paper and released scripts | here |
|---|---|---|---|
| plan | groups of one task | 8 episodes (4 on WebArena), 32 tasks | 8, 32 |
| plan | `Staged` | WebArena 8, 12, 15 turns, every 80 updates; BabyAI 6, 13, 20, every 100 | 8, 16, 24, every 8; tests at 24 |
| roll out | sampling | temperature 1, 512 tokens a turn | temperature 1 |
| score | `TaskReward` | the environment's | programmatic, exact |
| credit | `GroupRelative` | (r - mean) / std over the group | the same |
| update | `PPO` | clip 0.2, mean over tokens, KL 1e-3 to the start | the same |
| update | passes, rate | minibatches of 8 prompts, 2 epochs, 1e-6 | 2 epochs in 4 minibatches and more, 3e-4 |

Deviations: a model of about a million parameters on embedded sites. The rate was chosen of 3e-4, 5e-4 and 1e-3 by held-out success: at
5e-4 and above ever more actions become invalid after some 10 to 20 iterations, and what was won is lost.
"""

from longstride.claims.claim import Claim
from longstride.curriculum import Staged
from longstride.learner.config import LearnerConfig
from longstride.methods import KL, PPO, GroupRelative, Mean
from longstride.recipes import asyncwebrl
from longstride.recipes.tti import LONG, SHEET, SHORT, fixed
from longstride.rollout.rounds import PoolConfig
from longstride.stats import Ordering

RECIPE = asyncwebrl.RECIPE.model_copy(
    update={
        "name": "scaling_inter",
        "iterations": 24,
        "horizon": Staged(stages=(SHORT, 16, LONG), every=8),
        "pool": PoolConfig(),
        "credit": GroupRelative(),
        "loss": PPO(kl=KL(coefficient=1e-3), aggregation=Mean(over="token")),
        "learner": LearnerConfig(lr=3e-4, warmup_steps=5, epochs=2, batch_samples=384),
    }
)

CLAIM = Claim(
    name="scaling_inter",
    paper="arXiv 2509.08755, table 1",
    statement="Growing the horizon in stages beats training at a fixed short and at a fixed long horizon.",
    scale=("iterations=9", "evaluation.every=5", "evaluation.baselines=false"),
    arms={
        "staged": ("horizon.every=3",),
        "fixed_short": (fixed(SHORT),),
        "fixed_long": (fixed(LONG),),
        "sheet_staged": (SHEET, "horizon.every=3"),
        "sheet_fixed_short": (SHEET, fixed(SHORT)),
    },
    expected=Ordering(relations=("staged > fixed_short by 0.02", "staged > fixed_long by 0.02")),
    # everything is on the first page of a sheet: there is nothing to explore, so the longer horizon must not pay
    control=Ordering(relations=("sheet_staged > sheet_fixed_short by 0.05",)),
    seeds=(0, 1, 2, 3, 4),
)

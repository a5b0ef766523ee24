"""WSRL at its own size: `antmaze-large-diverse` of D4RL (arXiv 2412.07762).

| setting | released | source: zhouzypaul/wsrl |
|---|---|---|
| networks | critics of 4 layers of 256, policy of 2, ReLU, layer normalisation | `experiments/configs/train_config.py`, `antmaze_wsrl` |
| values | 10 critics, the least of 2 at random; discount 0.99, tau 0.005, the best of 10 next actions | `wsrl_config.py`, `sac_config.py`, `train_config.py` |
| conservative term | 10 actions of each source, temperature 1 | `cql_config.py` |
| policy | temperature from 1, entropy of -1 a coordinate | `sac_config.py`, `wsrl/agents/sac.py` |
| rate | 3e-4, policy 1e-4 | `sac_config.py` |
| reward | 10 r - 5 | `experiments/scripts/antmaze/launch_wsrl_finetune.sh` |
| offline | 1M updates | the same |
| warm-up | 5,000 steps | the same |
| online | 500,000 steps; after each four critic steps on slices of 256, one policy step on all 1,024 | the same, `finetune.py` |
| test | 20 episodes every 20,000 steps | `finetune.py` |

Offline the release takes one critic step to a policy step, on 256 rows: here an update has four and one in every phase,
so 250,000 updates are its 1M critic steps. It tunes the weight of the term to a gap of 0.8 in antmaze: here it is 5,
the release's for other tasks. Steps are collected as episodes of 1,000. Its data are not here: walks in the maze stand
for them.
"""

from longstride.control import (
    SAC,
    Conservative,
    ControlAgent,
    GaussianPolicy,
    Given,
    Level,
    NStep,
    TDCritic,
    TrainingPhase,
)
from longstride.models.mlp import Trunk
from longstride.papers.wsrl import recipe

CRITIC, POLICY = Trunk(width=256, depth=4, activation="relu"), Trunk(width=256, depth=2, activation="relu")
HORIZON = {"limit": 1000}
"""Steps of an episode."""

_level = Level(
    data=NStep(goals=Given(), discount=0.99, reward_scale=10.0, reward_shift=-5.0),
    critic=TDCritic(
        trunk=CRITIC,
        tau=0.005,
        ensemble=10,
        subset=2,
        best_of=10,
        conservative=Conservative(weight=5.0, temperature=1.0, actions=10, calibrated=True),
    ),
    policy=GaussianPolicy(trunk=POLICY),
    extraction=SAC(temperature=1.0),
)

RECIPE = recipe.RECIPE.replace(
    name="wsrl/published",
    agent=ControlAgent(levels=(_level,), batch=1024, slices=4, critic_lr=3e-4, policy_lr=1e-4),
    phases=(
        TrainingPhase(iterations=50, updates=5_000),
        TrainingPhase(iterations=1, episodes=5),
        TrainingPhase(iterations=500, episodes=1, utd=1.0, retained=0.0, conservative=False),
    ),
    horizon=HORIZON,
    test_horizon=HORIZON,
    evaluation={"episodes": 20, "every": 20},
)

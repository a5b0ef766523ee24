"""SAC at its own size, on a robot of MuJoCo: `pip install 'longstride[mujoco]'` (arXiv 1812.05905).

| setting | released | source: rail-berkeley/softlearning |
|---|---|---|
| networks | two critics and a policy of 2 layers of 256 | `examples/development/variants.py`, `Q_params`, `policy_params` |
| values | discount 0.99, tau 0.005, rewards as they are | the same, `ALGORITHM_PARAMS_BASE` |
| policy | entropy of -1 a coordinate | the same, `target_entropy` is `auto` |
| rate | 3e-4, batches of 256 | the same, `ALGORITHM_PARAMS_ADDITIONAL`, `sampler_params` |
| before the first update | 1,000 steps of any action | the same, `n_initial_exploration_steps` |
| online | 3M steps of HalfCheetah, an update after each | the same, `NUM_EPOCHS_PER_UNIVERSE_DOMAIN_TASK` |
| test | one episode every 1,000 steps | the same |

Here the updates of an episode come after it, as many; the first 1,000 steps are those of the untrained policy. Tests are
of ten episodes, every 10,000 steps.
"""

from longstride.control import SAC, ControlAgent, GaussianPolicy, Level, NStep, TDCritic, TrainingPhase
from longstride.models.mlp import Trunk
from longstride.papers.sac import recipe

TRUNK = Trunk(width=256, depth=2, norm=False, activation="relu")
HORIZON = {"limit": 1000}
"""Steps of an episode."""

_level = Level(
    data=NStep(discount=0.99),
    critic=TDCritic(trunk=TRUNK, tau=0.005),
    policy=GaussianPolicy(trunk=TRUNK),
    extraction=SAC(temperature=1.0, soft=True),
)

RECIPE = recipe.RECIPE.replace(
    name="sac/published",
    tasks={"id": "HalfCheetah-v5"},
    agent=ControlAgent(levels=(_level,), batch=256, critic_lr=3e-4, policy_lr=3e-4),
    phases=(TrainingPhase(iterations=1, episodes=1), TrainingPhase(iterations=2999, episodes=1, utd=1.0)),
    horizon=HORIZON,
    test_horizon=HORIZON,
    evaluation={"every": 10},
)

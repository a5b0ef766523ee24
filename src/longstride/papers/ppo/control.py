"""PPO in any Gymnasium environment: `tasks.id=CartPole-v1`; a box of actions takes
`agent.levels.0.policy.type=gaussian_policy`.

An iteration plays some episodes and makes ten passes over them (`utd`: passes by the size of a batch, 10 / 64). Rows of a
batch are drawn with replacement; there is no bonus for entropy, and gradients are not cut. Advantages and loss are those of
Stable-Baselines3 (`make parity`).
"""

from longstride.control import (
    CategoricalPolicy,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    GymnasiumTasks,
    LambdaReturns,
    Level,
    Proximal,
    TrainingPhase,
)
from longstride.curriculum import Fixed
from longstride.models.mlp import Trunk

TRUNK = Trunk(width=64, depth=2, norm=False, activation="relu")
HORIZON = Fixed(limit=500)

RECIPE = ControlRecipe(
    name="ppo/control",
    tasks=GymnasiumTasks(id="CartPole-v1", success_above=474),
    agent=ControlAgent(
        levels=(
            Level(critic=LambdaReturns(trunk=TRUNK), policy=CategoricalPolicy(trunk=TRUNK), extraction=Proximal()),
        ),
        batch=64,
        critic_lr=1e-3,
    ),
    phases=(TrainingPhase(iterations=20, episodes=8, utd=10 / 64),),
    horizon=HORIZON,
    test_horizon=HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=1),
)

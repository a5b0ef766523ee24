"""TD3 in any Gymnasium environment whose actions are a box: `tasks.id=HalfCheetah-v5 horizon.limit=1000 ...`."""

from longstride.control import (
    TD3,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    DeterministicPolicy,
    GymnasiumTasks,
    Level,
    NStep,
    TDCritic,
    TrainingPhase,
)
from longstride.curriculum import Fixed
from longstride.models.mlp import Trunk

TRUNK = Trunk(width=64, depth=2, norm=False, activation="relu")
HORIZON = Fixed(limit=200)

RECIPE = ControlRecipe(
    name="td3",
    tasks=GymnasiumTasks(id="Pendulum-v1"),
    agent=ControlAgent(
        levels=(
            Level(
                data=NStep(reward_scale=0.1),
                critic=TDCritic(trunk=TRUNK, followed="first", tau=0.01),
                policy=DeterministicPolicy(trunk=TRUNK, noise=0.2),
                extraction=TD3(tau=0.01),
            ),
        ),
        batch=256,
        slices=2,
        critic_lr=1e-3,
        policy_lr=1e-3,
    ),
    phases=(TrainingPhase(iterations=20, episodes=2, utd=0.5),),
    horizon=HORIZON,
    test_horizon=HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=1),
)

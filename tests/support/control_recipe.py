"""A recipe of control that runs in a second."""

from longstride.control import (
    SAC,
    Conservative,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    GaussianPolicy,
    Given,
    Level,
    NStep,
    PointMaze,
    TDCritic,
    TrainingPhase,
)
from longstride.curriculum import Fixed, Multiplicative
from longstride.models.mlp import Trunk

SMALL = Trunk(width=8, depth=1)
RECIPE = ControlRecipe(
    name="tiny",
    tasks=PointMaze(maze="umaze", walks="reach", episodes=4, length=40),
    agent=ControlAgent(
        levels=(
            Level(
                data=NStep(goals=Given(), reward_shift=-1.0),
                critic=TDCritic(trunk=SMALL, conservative=Conservative(actions=2, calibrated=True)),
                policy=GaussianPolicy(trunk=SMALL),
                extraction=SAC(),
            ),
        ),
        batch=8,
    ),
    phases=(
        TrainingPhase(iterations=1, updates=3),
        TrainingPhase(iterations=1, episodes=2),
        TrainingPhase(iterations=2, episodes=2, utd=0.1, retained=0.5),
    ),
    horizon=Multiplicative(start=5, limit=12),
    test_horizon=Fixed(limit=10),
    evaluation=ControlEvaluation(episodes=2, every=2),
)

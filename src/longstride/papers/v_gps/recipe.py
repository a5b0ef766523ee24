"""V-GPS in mazes."""

from longstride.control import (
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    GaussianPolicy,
    Given,
    Level,
    NStep,
    TrainingPhase,
)
from longstride.papers.v_gps.method import ReRanked
from longstride.setups import maze

RECIPE = ControlRecipe(
    name="v_gps",
    tasks=maze.ONLINE.replace(episodes=60, noise=1.5),
    agent=ControlAgent(
        levels=(
            Level(
                data=NStep(goals=Given(), reward_scale=maze.SUCCESS),
                critic=maze.CRITIC.replace(conservative=maze.CONSERVATIVE.replace(calibrated=True)),
                policy=GaussianPolicy(trunk=maze.TRUNK),
                extraction=ReRanked(),
            ),
        ),
        batch=128,
        critic_lr=1e-3,
        policy_lr=1e-3,
    ),
    phases=(TrainingPhase(iterations=4, updates=300),),
    horizon=maze.SHORT_HORIZON,
    test_horizon=maze.SHORT_HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=2),
)

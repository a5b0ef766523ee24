"""AWAC in mazes: offline, then online with half of each batch from the walks."""

from longstride.control import AWR, ControlEvaluation, ControlRecipe, NormalPolicy, TrainingPhase
from longstride.setups import maze

RECIPE = ControlRecipe(
    name="awac",
    tasks=maze.ONLINE,
    agent=maze.agent(maze.CRITIC, NormalPolicy(trunk=maze.TRUNK), AWR(temperature=1.0)),
    phases=(
        TrainingPhase(iterations=4, updates=150),
        TrainingPhase(iterations=8, episodes=10, updates=250, retained=0.5),
    ),
    horizon=maze.SHORT_HORIZON,
    test_horizon=maze.SHORT_HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=1),
)

"""CQL in mazes."""

from longstride.control import ControlEvaluation, ControlRecipe, PointMaze, TrainingPhase
from longstride.setups import maze

RECIPE = ControlRecipe(
    name="cql",
    tasks=PointMaze(maze="medium", walks="reach", episodes=400, length=maze.MEDIUM_HORIZON.limit),
    agent=maze.actor_critic(maze.CRITIC.replace(conservative=maze.CONSERVATIVE), critic_lr=1e-3),
    phases=(TrainingPhase(iterations=4, updates=500),),
    horizon=maze.MEDIUM_HORIZON,
    test_horizon=maze.MEDIUM_HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=1),
)

"""ReCOIL in the U-maze: ten walks to the goals of the tests are an expert's, and nine in ten of the others wander. No reward is
read (see `dual_rl`). One run of half a minute reached 0.85 [0.77, 0.91] of the goals."""

from longstride.control import AWR, NormalPolicy, PointMaze, TrainingPhase
from longstride.papers.dual_rl.method import ExpertSteps, ReCOIL
from longstride.papers.dual_rl.recipe import RECIPE as F_DVL
from longstride.setups import maze

_walks = PointMaze(
    maze="umaze", walks="reach", episodes=200, length=maze.SHORT_HORIZON.limit, wandering=0.9, demonstrations=10
)
RECIPE = F_DVL.replace(
    name="dual_rl/recoil",
    tasks=ExpertSteps(tasks=_walks),
    agent=maze.agent(
        ReCOIL(trunk=maze.TRUNK, tau=maze.CRITIC.tau),
        NormalPolicy(trunk=maze.TRUNK),
        AWR(temperature=1.0, largest=100.0),
        critic_lr=1e-3,
        policy_lr=1e-3,
    ),
    phases=(TrainingPhase(iterations=4, updates=300, demonstrated=0.5),),
    horizon=maze.SHORT_HORIZON,
    test_horizon=maze.SHORT_HORIZON,
    evaluation={"every": 4, "episodes": 20},
)

"""FTPedel in any Gymnasium environment with discrete actions, with data that somebody recorded: `tasks.id=CartPole-v1 tasks.data=FILE`.

Online episodes go where the data lack something. Set `agent.levels.0.critic.target_range` to the least
and the largest discounted return, `agent.levels.0.critic.unknown` to about their difference, and `horizon.limit` to an episode's steps.
`agent.levels.0.critic.tolerance` is what may be lacking.
"""

from longstride.control import (
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    GymnasiumTasks,
    Level,
    NStep,
    TrainingPhase,
    UniformPolicy,
)
from longstride.curriculum import Fixed
from longstride.papers.ftpedel.method import Designed, DesignedQ

_level = Level(
    data=NStep(discount=0.95),
    critic=DesignedQ(width=1.0, unknown=20.0, noise=1.0, target_range=(0.0, 20.0)),
    policy=UniformPolicy(),
    extraction=Designed(),
)
RECIPE = ControlRecipe(
    name="ftpedel/recorded",
    tasks=GymnasiumTasks(id="CartPole-v1", data="cartpole.hdf5"),
    agent=ControlAgent(levels=(_level,), batch=32),
    phases=(
        TrainingPhase(iterations=1, updates=1),
        TrainingPhase(iterations=20, episodes=5, updates=1, retained=0.5),
    ),
    horizon=Fixed(limit=500),
    test_horizon=Fixed(limit=500),
    evaluation=ControlEvaluation(episodes=10, every=5),
)

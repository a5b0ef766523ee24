"""SQIRL on a frozen lake, and in any environment of Gymnasium with discrete actions: `tasks.id=CartPole-v1
tasks.success_above=40 horizon.limit=50 test_horizon.limit=50`.

An iteration settles one step of the episode, so there are as many of them as an episode has steps:
`phases.0.iterations=50`, and `agent.levels.0.critic.steps` is no less.
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
from longstride.papers.sqirl.method import FewStepQ, SettledSoFar

HORIZON = Fixed(limit=30)
"""Steps of an episode."""
RECIPE = ControlRecipe(
    name="sqirl",
    tasks=GymnasiumTasks(id="FrozenLake-v1", wrappers={"TimeAwareObservation": {}}, success_above=0.5),
    agent=ControlAgent(
        levels=(
            Level(
                data=NStep(finite=True),
                critic=FewStepQ(steps=HORIZON.limit),
                policy=UniformPolicy(),
                extraction=SettledSoFar(),
            ),
        ),
        batch=256,
        critic_lr=1e-3,
    ),
    phases=(TrainingPhase(iterations=HORIZON.limit, episodes=200, updates=60),),
    horizon=HORIZON,
    test_horizon=HORIZON,
    evaluation=ControlEvaluation(episodes=100, every=10),
)

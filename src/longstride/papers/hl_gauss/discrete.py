"""HL-Gauss in a double DQN, in any Gymnasium environment with discrete actions: `tasks.id=MountainCar-v0`.

As in `hl_gauss`, the bins have to span the returns: a pole that never falls earns 1 / (1 - 0.99) = 100.
"""

from longstride.control import (
    DQN,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    Greedy,
    GymnasiumTasks,
    Level,
    TrainingPhase,
    UniformPolicy,
)
from longstride.curriculum import Fixed
from longstride.models.heads import HLGauss
from longstride.setups import pendulum

HORIZON = Fixed(limit=500)
_level = Level(
    critic=DQN(trunk=pendulum.TRUNK, tau=0.01, head=HLGauss(low=0.0, high=100.0, bins=101)),
    policy=UniformPolicy(),
    extraction=Greedy(epsilon=0.1),
)
RECIPE = ControlRecipe(
    name="hl_gauss/discrete",
    tasks=GymnasiumTasks(id="CartPole-v1", success_above=474),
    agent=ControlAgent(levels=(_level,), batch=64, critic_lr=1e-3),
    phases=(TrainingPhase(iterations=20, episodes=4, updates=60, utd=0.25),),
    horizon=HORIZON,
    test_horizon=HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=5),
)

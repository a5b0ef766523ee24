"""MOORL in any Gymnasium environment with a box of actions, beside what somebody recorded there: `tasks.id=Hopper-v5
tasks.data=FILE`.

See `setups.recorded`. It collects: 200 episodes, with an update for each step.
"""

from longstride.control import SAC, ControlAgent, GaussianPolicy, Level, Reptile, TDCritic, TrainingPhase
from longstride.setups import recorded

_level = Level(critic=TDCritic(trunk=recorded.TRUNK), policy=GaussianPolicy(trunk=recorded.TRUNK), extraction=SAC())
RECIPE = recorded.recipe("moorl/recorded", ControlAgent(levels=(_level,))).replace(
    phases=(TrainingPhase(iterations=100, episodes=2, utd=1.0, retained=0.5, reptile=Reptile()),),
    evaluation={"every": 10},
)

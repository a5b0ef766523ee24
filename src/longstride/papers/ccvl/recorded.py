"""CCVL on recorded data of any Gymnasium environment with discrete actions: `tasks.id=CartPole-v1 tasks.data=FILE`.

See `setups.recorded`. `agent.levels.0.extraction.scale` is in the units of your values (after `agent.levels.0.data.reward_scale`): it says
how large a temporal difference speaks against a confidence. `agent.levels.0.extraction.deltas=[0.1]` is the same with one of 0.9.
"""

from longstride.control import ControlAgent, GymnasiumTasks, Level, UniformPolicy
from longstride.papers.ccvl.method import ConfidenceBelief, ConfidenceQ
from longstride.setups import recorded

_level = Level(critic=ConfidenceQ(trunk=recorded.TRUNK), policy=UniformPolicy(), extraction=ConfidenceBelief())
RECIPE = recorded.recipe("ccvl/recorded", ControlAgent(levels=(_level,), batch=64)).replace(
    tasks=GymnasiumTasks(id="CartPole-v1", data="cartpole.hdf5")
)

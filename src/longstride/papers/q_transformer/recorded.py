"""Q-Transformer's values on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5
tasks.data=FILE`.

See `setups.recorded`. `agent.levels.0.critic.least` is the least return that is possible: 0 where no reward is negative.
"""

from longstride.control import BoxPolicy, ControlAgent, Level
from longstride.papers.q_transformer.method import CoordinateQ, GreedyByCoordinate
from longstride.setups import recorded

_level = Level(critic=CoordinateQ(trunk=recorded.TRUNK), policy=BoxPolicy(), extraction=GreedyByCoordinate())
RECIPE = recorded.recipe("q_transformer/recorded", ControlAgent(levels=(_level,)))

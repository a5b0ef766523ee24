"""IQL on recorded data of any Gymnasium environment, whose episodes are drawn by their returns: `tasks.id=Hopper-v5
tasks.data=FILE`.

See `setups.recorded`. `agent.weights` goes with any other agent too: `longstride train cql/recorded
agent.weights.type=longstride.papers.trajectory_weighting.method:ByReturn`.
"""

from longstride.control import AWR, ControlAgent, ImplicitQ, Level, NormalPolicy
from longstride.papers.trajectory_weighting.method import ByReturn
from longstride.setups import recorded

_level = Level(
    critic=ImplicitQ(trunk=recorded.TRUNK),
    policy=NormalPolicy(trunk=recorded.TRUNK),
    extraction=AWR(temperature=1 / 3, largest=100.0),
)
RECIPE = recorded.recipe("trajectory_weighting/recorded", ControlAgent(levels=(_level,), weights=ByReturn()))

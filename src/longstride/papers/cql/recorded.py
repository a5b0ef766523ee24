"""CQL on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. The weight of the gap is the paper's for robots (5).
"""

from longstride.control import SAC, Conservative, ControlAgent, GaussianPolicy, Level, TDCritic
from longstride.setups import recorded

_level = Level(
    critic=TDCritic(trunk=recorded.TRUNK, conservative=Conservative(weight=5.0, actions=4)),
    policy=GaussianPolicy(trunk=recorded.TRUNK),
    extraction=SAC(),
)
RECIPE = recorded.recipe("cql/recorded", ControlAgent(levels=(_level,), policy_lr=1e-4))

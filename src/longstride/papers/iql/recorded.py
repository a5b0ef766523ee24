"""IQL on recorded data of any Gymnasium environment: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. Expectile and weights are the paper's for robots. Discrete actions take
`agent.levels.0.policy.type=categorical_policy`.
"""

from longstride.control import AWR, ControlAgent, ImplicitQ, Level, NormalPolicy
from longstride.setups import recorded

_level = Level(
    critic=ImplicitQ(trunk=recorded.TRUNK),
    policy=NormalPolicy(trunk=recorded.TRUNK),
    extraction=AWR(temperature=1 / 3, largest=100.0),
)
RECIPE = recorded.recipe("iql/recorded", ControlAgent(levels=(_level,)))

"""AWAC on recorded data of any Gymnasium environment: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. Discrete actions take `agent.levels.0.policy.type=categorical_policy`.
"""

from longstride.control import AWR, ControlAgent, Level, NormalPolicy, TDCritic
from longstride.setups import recorded

_level = Level(
    critic=TDCritic(trunk=recorded.TRUNK), policy=NormalPolicy(trunk=recorded.TRUNK), extraction=AWR(temperature=1.0)
)
RECIPE = recorded.recipe("awac/recorded", ControlAgent(levels=(_level,)))

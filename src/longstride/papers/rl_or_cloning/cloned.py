"""Cloning of recorded data of any Gymnasium environment: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. Discrete actions take `agent.levels.0.policy.type=categorical_policy`. The other side is
`rl_or_cloning/recorded`.
"""

from longstride.control import BehaviourCloning, ControlAgent, GaussianPolicy, Level
from longstride.setups import recorded

_level = Level(policy=GaussianPolicy(trunk=recorded.TRUNK), extraction=BehaviourCloning())
RECIPE = recorded.recipe("rl_or_cloning/cloned", ControlAgent(levels=(_level,)))

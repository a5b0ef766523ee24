"""Offline RL on recorded data of any Gymnasium environment with a box of actions, to be held against cloning of the same file
(`rl_or_cloning/cloned`): `tasks.id=Hopper-v5 tasks.data=FILE`, and then `longstride compare`.

See `setups.recorded`. It is `cql/recorded`; the policies of both sides are of one kind.
"""

from longstride.control import SAC, Conservative, ControlAgent, GaussianPolicy, Level, TDCritic
from longstride.setups import recorded

_level = Level(
    critic=TDCritic(trunk=recorded.TRUNK, conservative=Conservative(weight=5.0, actions=4)),
    policy=GaussianPolicy(trunk=recorded.TRUNK),
    extraction=SAC(),
)
RECIPE = recorded.recipe("rl_or_cloning/recorded", ControlAgent(levels=(_level,), policy_lr=1e-4))

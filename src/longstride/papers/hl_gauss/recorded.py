"""HL-Gauss in CQL on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. As in `hl_gauss`, the bins have to span the returns: a hopper that never falls earns some 3 to 4 a step.
"""

from longstride.control import SAC, Conservative, ControlAgent, GaussianPolicy, Level, TDCritic
from longstride.models.heads import HLGauss
from longstride.setups import recorded

_critic = TDCritic(
    trunk=recorded.TRUNK,
    head=HLGauss(low=-50.0, high=400.0, bins=101),
    conservative=Conservative(weight=5.0, actions=4),
)
_level = Level(critic=_critic, policy=GaussianPolicy(trunk=recorded.TRUNK), extraction=SAC())
RECIPE = recorded.recipe("hl_gauss/recorded", ControlAgent(levels=(_level,), policy_lr=1e-4))

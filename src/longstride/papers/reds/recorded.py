"""CQL (ReDS) on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. All but rho is `cql/recorded`.
"""

from longstride.control import SAC, Conservative, ControlAgent, GaussianPolicy, Level
from longstride.papers.reds.method import Reweighted
from longstride.setups import recorded

_policy = GaussianPolicy(trunk=recorded.TRUNK)
_level = Level(
    critic=Reweighted(trunk=recorded.TRUNK, conservative=Conservative(weight=5.0, actions=4), rho=_policy),
    policy=_policy,
    extraction=SAC(),
)
RECIPE = recorded.recipe("reds/recorded", ControlAgent(levels=(_level,), policy_lr=1e-4))

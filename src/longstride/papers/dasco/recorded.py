"""DASCO on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`.
"""

from longstride.control import ControlAgent, GaussianPolicy, Level
from longstride.papers.dasco.method import Adversarial, Supported
from longstride.setups import recorded

_policy = GaussianPolicy(trunk=recorded.TRUNK)
_level = Level(critic=Adversarial(trunk=recorded.TRUNK, generator=_policy), policy=_policy, extraction=Supported())
RECIPE = recorded.recipe("dasco/recorded", ControlAgent(levels=(_level,)))

"""floq on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. The policy stays near the data by its distance from their actions (`agent.levels.0.extraction.alpha`), and
the range of values has to be said (`agent.levels.0.critic.seen.low`, `.high`).
"""

from longstride.control import SAC, ControlAgent, GaussianPolicy, Level
from longstride.models.heads import HLGauss
from longstride.papers.floq.method import FlowReturns
from longstride.setups import recorded

_level = Level(
    critic=FlowReturns(trunk=recorded.TRUNK, seen=HLGauss(low=-50.0, high=400.0, bins=50, sigma=16.0)),
    policy=GaussianPolicy(trunk=recorded.TRUNK),
    extraction=SAC(alpha=1.0),
)
RECIPE = recorded.recipe("floq/recorded", ControlAgent(levels=(_level,)))

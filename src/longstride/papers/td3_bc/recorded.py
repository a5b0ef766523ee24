"""TD3+BC on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. An update is two steps of the critics and one of the policy, so 20,000 updates are 40,000 of the
paper's.
"""

from longstride.control import TD3, ControlAgent, DeterministicPolicy, Level, TDCritic
from longstride.setups import recorded

_level = Level(
    critic=TDCritic(trunk=recorded.TRUNK, followed="first"),
    policy=DeterministicPolicy(trunk=recorded.TRUNK),
    extraction=TD3(q_weight=2.5),
)
RECIPE = recorded.recipe("td3_bc/recorded", ControlAgent(levels=(_level,), batch=512, slices=2))

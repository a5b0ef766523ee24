"""f-DVL on recorded data of any Gymnasium environment: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. `agent.levels.0.critic.maximiser={type="longstride.papers.dual_rl.method:Gumbel"}` is XQL. Discrete
actions take `agent.levels.0.policy.type=categorical_policy`.
"""

from longstride.control import AWR, ControlAgent, ImplicitQ, Level, NormalPolicy
from longstride.papers.dual_rl.method import ChiSquare
from longstride.setups import recorded

_level = Level(
    critic=ImplicitQ(trunk=recorded.TRUNK, maximiser=ChiSquare()),
    policy=NormalPolicy(trunk=recorded.TRUNK),
    extraction=AWR(temperature=1 / 3, largest=100.0),
)
RECIPE = recorded.recipe("dual_rl/recorded", ControlAgent(levels=(_level,)))

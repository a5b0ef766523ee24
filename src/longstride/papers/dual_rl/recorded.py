"""f-DVL on recorded data of any Gymnasium environment: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. `agent.levels.0.critic.maximiser={type="longstride.papers.dual_rl.method:Gumbel"}` is XQL. Discrete
actions take `agent.levels.0.policy.type=categorical_policy`.
"""

from longstride.papers.dual_rl.method import ChiSquare
from longstride.setups import recorded

RECIPE = recorded.recipe("dual_rl/recorded", recorded.implicit(ChiSquare()))

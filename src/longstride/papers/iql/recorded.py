"""IQL on recorded data of any Gymnasium environment: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. Expectile and weights are the paper's for robots. Discrete actions take
`agent.levels.0.policy.type=categorical_policy`.
"""

from longstride.control import Expectile
from longstride.setups import recorded

RECIPE = recorded.recipe("iql/recorded", recorded.implicit(Expectile()))

"""IQL on recorded data of any Gymnasium environment, whose steps are drawn by a learned ratio: `tasks.id=Hopper-v5
tasks.data=FILE`.

See `setups.recorded`. `agent.levels.0.rows` goes with any other agent too: `longstride train cql/recorded
agent.levels.0.rows.type=longstride.papers.density_weighting.method:DensityRatio`.
"""

from longstride.control import Expectile
from longstride.papers.density_weighting.method import DensityRatio
from longstride.setups import recorded

_agent = recorded.implicit(Expectile())
RECIPE = recorded.recipe(
    "density_weighting/recorded", _agent.replace(levels=(_agent.levels[0].replace(rows=DensityRatio()),))
)

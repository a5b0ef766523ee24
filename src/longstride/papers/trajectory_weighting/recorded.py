"""IQL on recorded data of any Gymnasium environment, whose episodes are drawn by their returns: `tasks.id=Hopper-v5
tasks.data=FILE`.

See `setups.recorded`. `agent.weights` goes with any other agent too: `longstride train cql/recorded
agent.weights.type=longstride.papers.trajectory_weighting.method:ByReturn`.
"""

from longstride.control import Expectile
from longstride.papers.trajectory_weighting.method import ByReturn
from longstride.setups import recorded

RECIPE = recorded.recipe("trajectory_weighting/recorded", recorded.implicit(Expectile()).replace(weights=ByReturn()))

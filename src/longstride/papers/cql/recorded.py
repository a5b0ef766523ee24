"""CQL on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`.
"""

from longstride.setups import recorded

RECIPE = recorded.recipe("cql/recorded", recorded.conservative())

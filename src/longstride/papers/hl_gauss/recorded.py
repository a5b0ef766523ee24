"""HL-Gauss in CQL on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. As in `hl_gauss`, the bins have to span the returns: a hopper that never falls earns some 3 to 4 a step.
"""

from longstride.models.heads import HLGauss
from longstride.setups import recorded

RECIPE = recorded.recipe("hl_gauss/recorded", recorded.conservative(head=HLGauss(low=-50.0, high=400.0, bins=101)))

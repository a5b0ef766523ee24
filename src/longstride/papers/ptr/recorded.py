"""PTR on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5
'tasks.data=["a.hdf5","b.hdf5"]' tasks.demonstrations=mine.hdf5`.

See `setups.recorded`. All but the phases is `cql/recorded`; the weight of the gap is the paper's.
"""

from longstride.control import TrainingPhase
from longstride.setups import recorded

RECIPE = recorded.recipe("ptr/recorded", recorded.conservative(weight=10.0)).replace(
    tasks={"demonstrations": "mine.hdf5"},
    phases=(TrainingPhase(iterations=16, updates=1000), TrainingPhase(iterations=4, updates=1000, demonstrated=0.1)),
)

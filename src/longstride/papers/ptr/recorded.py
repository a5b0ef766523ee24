"""PTR on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5
'tasks.data=["a.hdf5","b.hdf5"]' tasks.demonstrations=mine.hdf5`.

See `setups.recorded`. All but the phases is `cql/recorded`; the weight of the gap is the paper's.
"""

from longstride.control import SAC, Conservative, ControlAgent, GaussianPolicy, Level, TDCritic, TrainingPhase
from longstride.setups import recorded

_level = Level(
    critic=TDCritic(trunk=recorded.TRUNK, conservative=Conservative(weight=10.0, actions=4)),
    policy=GaussianPolicy(trunk=recorded.TRUNK),
    extraction=SAC(),
)
RECIPE = recorded.recipe("ptr/recorded", ControlAgent(levels=(_level,), policy_lr=1e-4)).replace(
    tasks={"demonstrations": "mine.hdf5"},
    phases=(TrainingPhase(iterations=16, updates=1000), TrainingPhase(iterations=4, updates=1000, demonstrated=0.1)),
)

"""DSRL on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. The first five iterations clone; then the flow is steered by what the data say. To act instead from
there on, as in the paper: `phases.1.updates=0 phases.1.episodes=4 phases.1.utd=0.5 phases.1.retained=0.5`.
"""

from longstride.control import ControlAgent, GaussianPolicy, Level, TrainingPhase
from longstride.papers.dsrl.method import LatentSAC, NoiseAliased, SteeredFlow
from longstride.setups import recorded

_level = Level(
    critic=NoiseAliased(trunk=recorded.TRUNK),
    policy=SteeredFlow(trunk=recorded.TRUNK, steps=5, steering=GaussianPolicy(trunk=recorded.TRUNK)),
    extraction=LatentSAC(),
)
RECIPE = recorded.recipe("dsrl/recorded", ControlAgent(levels=(_level,))).replace(
    phases=(TrainingPhase(iterations=5, updates=1000, cloning=True), TrainingPhase(iterations=15, updates=1000))
)

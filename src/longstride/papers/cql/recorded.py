"""CQL on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5 tasks.data=FILE`.

`FILE` is D4RL's HDF5, OGBench's or plain `.npz`, or `minari:NAME` (`control.recorded`). The environment plays no part
in training: the agent is tested in it. The weight of the gap is the paper's for robots (5); networks are narrower than
its 256, and 20,000 updates stand for its million (`phases.0.iterations=1000`).
"""

from longstride.control import (
    SAC,
    Conservative,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    GaussianPolicy,
    GymnasiumTasks,
    Level,
    TDCritic,
    TrainingPhase,
)
from longstride.curriculum import Fixed
from longstride.models.mlp import Trunk

TRUNK = Trunk(width=128, depth=2, norm=False, activation="relu")
HORIZON = Fixed(limit=1000)

RECIPE = ControlRecipe(
    name="cql/recorded",
    tasks=GymnasiumTasks(id="Hopper-v5", data="hopper.hdf5"),
    agent=ControlAgent(
        levels=(
            Level(
                critic=TDCritic(trunk=TRUNK, conservative=Conservative(weight=5.0, actions=4)),
                policy=GaussianPolicy(trunk=TRUNK),
                extraction=SAC(),
            ),
        ),
        policy_lr=1e-4,
    ),
    phases=(TrainingPhase(iterations=20, updates=1000),),
    horizon=HORIZON,
    test_horizon=HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=1),
)

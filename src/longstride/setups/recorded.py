"""Recorded data: what recipes of control share that learn from a file and are tested in an environment of Gymnasium.

`longstride train PAPER/recorded tasks.id=Hopper-v5 tasks.data=FILE`; `FILE` is D4RL's HDF5, OGBench's or plain `.npz`,
or `minari:NAME` (`control.recorded`). The environment plays no part in training: the agent is tested in it. Networks
are narrower than the papers' 256, and 20,000 updates stand for their million (`phases.0.iterations=1000`).
"""

from longstride.control import (
    AWR,
    SAC,
    Conservative,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    GaussianPolicy,
    GymnasiumTasks,
    ImplicitQ,
    Level,
    Maximiser,
    NormalPolicy,
    TDCritic,
    TrainingPhase,
)
from longstride.curriculum import Fixed
from longstride.models.heads import Head, Scalar
from longstride.models.mlp import Trunk

TRUNK = Trunk(width=128, depth=2, norm=False, activation="relu")
"""Hidden layers of every network."""
HORIZON = Fixed(limit=1000)
SCALAR = Scalar()


def implicit(maximiser: Maximiser) -> ControlAgent:
    """IQL with its paper's weights for robots; `maximiser` is the loss by which V comes near the largest Q."""
    level = Level(
        critic=ImplicitQ(trunk=TRUNK, maximiser=maximiser),
        policy=NormalPolicy(trunk=TRUNK),
        extraction=AWR(temperature=1 / 3, largest=100.0),
    )
    return ControlAgent(levels=(level,))


def conservative(weight: float = 5.0, head: Head = SCALAR) -> ControlAgent:
    """CQL; the weight of the gap is its paper's for robots."""
    level = Level(
        critic=TDCritic(trunk=TRUNK, head=head, conservative=Conservative(weight=weight, actions=4)),
        policy=GaussianPolicy(trunk=TRUNK),
        extraction=SAC(),
    )
    return ControlAgent(levels=(level,), policy_lr=1e-4)


def recipe(name: str, agent: ControlAgent) -> ControlRecipe:
    """The recipe of an agent."""
    return ControlRecipe(
        name=name,
        tasks=GymnasiumTasks(id="Hopper-v5", data="hopper.hdf5"),
        agent=agent,
        phases=(TrainingPhase(iterations=20, updates=1000),),
        horizon=HORIZON,
        test_horizon=HORIZON,
        evaluation=ControlEvaluation(episodes=10, every=1),
    )

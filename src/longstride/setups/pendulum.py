"""A pendulum: what recipes of control share that learn online, from nothing, in any environment of Gymnasium whose
actions are a box: `longstride train PAPER tasks.id=HalfCheetah-v5 horizon.limit=1000 test_horizon.limit=1000`.

Networks are small and rates high, so that a run takes a minute on one core.
"""

from longstride.control import (
    ControlAgent,
    ControlCritic,
    ControlEvaluation,
    ControlPolicy,
    ControlRecipe,
    Extraction,
    GymnasiumTasks,
    Level,
    NStep,
    TDCritic,
    TrainingPhase,
)
from longstride.curriculum import Fixed
from longstride.models.mlp import Trunk

TRUNK = Trunk(width=64, depth=2, norm=False, activation="relu")
"""Hidden layers of every network."""
CRITIC = TDCritic(trunk=TRUNK, tau=0.01)
"""Two critics, the least of which counts."""
DATA = NStep(reward_scale=0.1)
"""Single steps, with rewards that make values of some tens."""
HORIZON = Fixed(limit=200)
"""Steps of an episode: the time limit of Pendulum-v1."""


def recipe(
    name: str, critic: ControlCritic, policy: ControlPolicy, extraction: Extraction, batch: int = 128, slices: int = 1
) -> ControlRecipe:
    """A recipe that collects 40 episodes and makes an update for every two steps of them."""
    level = Level(data=DATA, critic=critic, policy=policy, extraction=extraction)
    return ControlRecipe(
        name=name,
        tasks=GymnasiumTasks(id="Pendulum-v1"),
        agent=ControlAgent(levels=(level,), batch=batch, slices=slices, critic_lr=1e-3, policy_lr=1e-3),
        phases=(TrainingPhase(iterations=20, episodes=2, utd=0.5),),
        horizon=HORIZON,
        test_horizon=HORIZON,
        evaluation=ControlEvaluation(episodes=10, every=1),
    )

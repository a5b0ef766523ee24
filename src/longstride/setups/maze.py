"""Mazes: what recipes of control share, so that each of them says only what its paper adds.

CQL, Cal-QL and WSRL learn to reach goals in `PointMaze` from walks with one goal each, by the same actor-critic. A
success earns `SUCCESS` and a step costs nothing, so values lie between 0 and `SUCCESS`: those of a new network are then
too low at first instead of too high, which a few thousand updates can correct. Rates are high and networks small for
the same reason: a run takes a minute on two cores.
"""

from longstride.control import (
    AWR,
    SAC,
    TD3,
    Conservative,
    ControlAgent,
    ControlCritic,
    ControlEvaluation,
    ControlPolicy,
    ControlRecipe,
    DeterministicPolicy,
    Extraction,
    GaussianPolicy,
    Given,
    ImplicitQ,
    Level,
    Maximiser,
    NormalPolicy,
    NStep,
    PointMaze,
    TDCritic,
    TrainingPhase,
)
from longstride.curriculum import Fixed
from longstride.models.mlp import Trunk

MEDIUM_HORIZON = Fixed(limit=250)
"""Steps of an episode in the medium maze: a cell takes ten, and the longest of its shortest paths has eleven cells."""
LARGE_HORIZON = Fixed(limit=400)
"""Steps of an episode in the large maze: the longest of its shortest paths has nineteen cells."""
SHORT_HORIZON = Fixed(limit=100)
"""Steps of an episode in the U-maze: the longest of its shortest paths has six cells."""

ONLINE = PointMaze(maze="umaze", walks="reach", episodes=20, length=SHORT_HORIZON.limit, practice="tests")
"""Tasks for training that goes online: a maze small enough to be learned in a few thousand steps, and so few walks that
something is left to learn."""

SUCCESS = 10.0
"""What a success earns, and so the largest of all values."""
TRUNK = Trunk(width=64, depth=2, activation="relu")
"""Hidden layers of every network."""
CRITIC = TDCritic(trunk=TRUNK, tau=0.02, target_range=(0.0, SUCCESS))
"""A plain critic: the values of SAC."""
CONSERVATIVE = Conservative(weight=1.0, temperature=0.1, actions=2)
"""CQL's term at the scale of these values."""


def agent(
    critic: ControlCritic,
    policy: ControlPolicy,
    extraction: Extraction,
    slices: int = 1,
    critic_lr: float = 3e-4,
    policy_lr: float = 3e-4,
) -> ControlAgent:
    """An agent for tasks that end at their goal."""
    data = NStep(goals=Given(), reward_scale=SUCCESS)
    level = Level(data=data, critic=critic, policy=policy, extraction=extraction)
    return ControlAgent(levels=(level,), batch=128, slices=slices, critic_lr=critic_lr, policy_lr=policy_lr)


def actor_critic(critic: TDCritic, slices: int = 1, critic_lr: float = 3e-4) -> ControlAgent:
    """SAC."""
    return agent(critic, GaussianPolicy(trunk=TRUNK), SAC(temperature=0.01), slices, critic_lr)


def offline(
    name: str, critic: ControlCritic, policy: ControlPolicy, extraction: Extraction, policy_lr: float = 1e-3
) -> ControlRecipe:
    """A recipe that learns from 400 walks in the medium maze and is tested there."""
    return ControlRecipe(
        name=name,
        tasks=PointMaze(maze="medium", walks="reach", episodes=400, length=MEDIUM_HORIZON.limit),
        agent=agent(critic, policy, extraction, critic_lr=1e-3, policy_lr=policy_lr),
        phases=(TrainingPhase(iterations=4, updates=500),),
        horizon=MEDIUM_HORIZON,
        test_horizon=MEDIUM_HORIZON,
        evaluation=ControlEvaluation(episodes=10, every=1),
    )


def implicit(name: str, maximiser: Maximiser) -> ControlRecipe:
    """`offline` by IQL; `maximiser` is the loss by which V comes near the largest Q."""
    critic = ImplicitQ(trunk=TRUNK, tau=CRITIC.tau, maximiser=maximiser)
    return offline(name, critic, NormalPolicy(trunk=TRUNK), AWR(temperature=1 / 3, largest=100.0))


def near(name: str) -> ControlRecipe:
    """`offline` by TD3+BC: the squared distance keeps the policy near the action of the data."""
    extraction = TD3(q_weight=2.5, tau=CRITIC.tau)
    return offline(name, CRITIC.replace(followed="first"), DeterministicPolicy(trunk=TRUNK), extraction)


def few_good(recipe: ControlRecipe) -> ControlRecipe:
    """The recipe in the U-maze, on walks of which nine in ten wander."""
    return _in_the_u_maze(recipe, wandering=0.9)


def uneven(recipe: ControlRecipe) -> ControlRecipe:
    """The recipe in the U-maze, on walks four in five of whose actions are random in one half of it."""
    return _in_the_u_maze(recipe, uneven=0.8)


def _in_the_u_maze(recipe: ControlRecipe, **walks: float) -> ControlRecipe:
    return recipe.replace(
        tasks={"maze": "umaze", "length": SHORT_HORIZON.limit} | walks,
        phases=({"iterations": 4, "updates": 300},),
        horizon=SHORT_HORIZON,
        test_horizon=SHORT_HORIZON,
        evaluation={"every": 4, "episodes": 20},
    )

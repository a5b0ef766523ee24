"""HIQL in mazes."""

from longstride.control import (
    AWR,
    Ahead,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    FlowPolicy,
    ImplicitV,
    Level,
    NormalPolicy,
    NStep,
    PointMaze,
    Relabelled,
    TrainingPhase,
)
from longstride.models.mlp import Trunk
from longstride.setups import maze

K = 25
"""Steps to a way-point."""
DISCOUNT = 0.99
GOALS = Relabelled(current=0.2, future=0.5, geometric=DISCOUNT)
"""Goals that values are learned for."""


def hiql(trunk: Trunk, steps: int = K, tau: float = 0.005, options: int = 1) -> ControlAgent:
    """A policy of way-points and one toward them.

    Args:
        trunk: hidden layers of every network.
        steps: to a way-point.
        tau: see `ImplicitV.tau`.
        options: steps that the values of way-points take as one (OTA, arXiv 2505.12737).
    """
    values, weights = ImplicitV(trunk=trunk, tau=tau), AWR(temperature=(1 - DISCOUNT) / 3, largest=100.0)
    waypoints = Level(
        data=NStep(
            goals=GOALS,
            action="subgoal",
            steps=options,
            discount=DISCOUNT,
            discount_per=None if options == 1 else "transition",
        ),
        policy_goals=Relabelled(),
        policy_steps=steps,
        critic=values,
        policy=FlowPolicy(trunk=trunk),
        extraction=weights,
    )
    actions = Level(
        data=NStep(goals=GOALS, discount=DISCOUNT),
        policy_goals=Ahead(steps=steps),
        critic=values,
        policy=NormalPolicy(trunk=trunk),
        extraction=weights,
    )
    return ControlAgent(levels=(waypoints, actions), critic_lr=1e-3, policy_lr=1e-3)


RECIPE = ControlRecipe(
    name="hiql",
    tasks=PointMaze(maze="medium", walks="navigate"),
    agent=hiql(Trunk(width=64, depth=2), tau=0.02).replace(batch=128),
    phases=(TrainingPhase(iterations=4, updates=1000),),
    horizon=maze.MEDIUM_HORIZON,
    test_horizon=maze.MEDIUM_HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=2),
)

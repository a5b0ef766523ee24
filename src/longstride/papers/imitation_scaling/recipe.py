"""Cloning from some walks in each of some layouts, tested in new ones."""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.control import (
    BehaviourCloning,
    CategoricalPolicy,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    Level,
    TrainingPhase,
)
from longstride.curriculum import Fixed
from longstride.models.mlp import Trunk
from longstride.papers.imitation_scaling.method import GridLayouts
from longstride.stats import Ordering

TRUNK = Trunk(width=64, depth=2, norm=False, activation="relu")
HORIZON = Fixed(limit=32)

RECIPE = ControlRecipe(
    name="imitation_scaling",
    tasks=GridLayouts(),
    agent=ControlAgent(
        levels=(Level(policy=CategoricalPolicy(trunk=TRUNK), extraction=BehaviourCloning()),), batch=64, policy_lr=1e-3
    ),
    phases=(TrainingPhase(iterations=5, updates=300),),
    horizon=HORIZON,
    test_horizon=HORIZON,
    evaluation=ControlEvaluation(episodes=200, every=5),
)

_WALLS = {"open": 0.0, "some": 0.15, "many": 0.3}


def _of(walls: float) -> dict[str, ControlRecipe]:
    """Both sides of the claim, whose layouts have these walls: as many walks, in 64 layouts and in 8."""
    arm = RECIPE.replace(tasks={"walls": walls})
    return {"places": arm, "walks": arm.replace(tasks={"environments": 8, "demonstrations": 8})}


CLAIM = Claim(
    name="imitation_scaling",
    paper="arXiv 2410.18647, abstract",
    statement="Of as many walks, those in many layouts clone better than those in few, the more so the more layouts differ.",
    recipe=RECIPE,
    arms={f"{of}_{side}": arm for of, walls in _WALLS.items() for side, arm in _of(walls).items()},
    expected=Ordering(relations=("many_places > many_walks by 0.05",)),
    dose=tuple(f"{of}_places > {of}_walks" for of in _WALLS),
    worlds={"tasks.side": Between(low=6, high=10)},
    grid={"agent.policy_lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)},
    tuning_seeds=(930, 931),
    seeds=tuple(range(700, 720)),
    cost="iterations",
)

"""CQL on walks of a noisy expert in mazes, beside cloning of the expert's own walks; and the claim.

The dose is the length of the way: the longest of the shortest paths of the mazes are 6, 11 and 19 cells.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.control import (
    SAC,
    BehaviourCloning,
    ControlAgent,
    ControlRecipe,
    GaussianPolicy,
    Given,
    Level,
    NStep,
    TrainingPhase,
)
from longstride.setups import maze
from longstride.stats import Ordering

NOISE = 0.8
"""Deviation of the noise on a noisy expert's actions, which go from -1 to 1."""

_POLICY = GaussianPolicy(trunk=maze.TRUNK)
RECIPE = maze.offline(
    "rl_or_cloning", maze.CRITIC.replace(conservative=maze.CONSERVATIVE), _POLICY, SAC(temperature=0.01), policy_lr=3e-4
).replace(tasks={"noise": NOISE}, phases=(TrainingPhase(iterations=4, updates=400),), evaluation={"every": 4})
_cloning = Level(data=NStep(goals=Given()), policy=_POLICY, extraction=BehaviourCloning())


def _cloned(arm: ControlRecipe) -> ControlRecipe:
    """Cloning of the expert himself, on as many walks."""
    return arm.replace(agent=ControlAgent(levels=(_cloning,), batch=128, policy_lr=1e-3), tasks={"noise": 0.0})


_HORIZONS = {"umaze": maze.SHORT_HORIZON, "medium": maze.MEDIUM_HORIZON, "large": maze.LARGE_HORIZON}
_rl = {
    of: RECIPE.replace(tasks={"maze": of, "length": horizon.limit}, horizon=horizon, test_horizon=horizon)
    for of, horizon in _HORIZONS.items()
}

CLAIM = Claim(
    name="rl_or_cloning",
    paper="arXiv 2204.05618, abstract",
    statement="Offline RL on walks of a noisy expert beats cloning of as many walks of the expert, and the more so the longer the "
    "way.",
    recipe=RECIPE,
    arms={f"{of}_rl": arm for of, arm in _rl.items()} | {f"{of}_cloning": _cloned(arm) for of, arm in _rl.items()},
    expected=Ordering(relations=("large_rl > large_cloning by 0.2",)),
    dose=tuple(f"{of}_rl > {of}_cloning" for of in _HORIZONS),
    worlds={"tasks.episodes": Between(low=50, high=400, log=True)},
    grid={"agent.policy_lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)},
    tuning_seeds=(958, 959),
    seeds=tuple(range(640, 656)),
    cost="iterations",
)

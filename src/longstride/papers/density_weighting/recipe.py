"""TD3+BC in mazes, from walks of which few go to their goal, whose steps are drawn by a learned ratio; and the claim.

The dose is the share of walks that wander. Where none does, all steps lead to a goal, and nothing is left to prefer.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.control import ControlRecipe
from longstride.papers.density_weighting.method import DensityRatio
from longstride.setups import maze
from longstride.stats import Ordering


def _weighed(recipe: ControlRecipe, rows: DensityRatio | None) -> ControlRecipe:
    return recipe.replace(agent={"levels": {"0": {"rows": rows}}})


RECIPE = _weighed(maze.few_good(maze.near("density_weighting")), DensityRatio())

_SHARES = {"none": 0.0, "half": 0.5, "most": 0.9}
_ratio = {of: RECIPE.replace(tasks={"wandering": share}) for of, share in _SHARES.items()}

CLAIM = Claim(
    name="density_weighting",
    paper="arXiv 2310.04413, abstract",
    statement="Where most walks of the data wander, an offline method ends better if steps are drawn by a learned ratio, and the "
    "more so the more walks wander.",
    recipe=RECIPE,
    arms={f"{of}_ratio": arm for of, arm in _ratio.items()}
    | {f"{of}_even": _weighed(arm, None) for of, arm in _ratio.items()},
    expected=Ordering(relations=("most_ratio > most_even by 0.05",)),
    dose=tuple(f"{of}_ratio > {of}_even" for of in _SHARES),
    worlds={"tasks.episodes": Between(low=200, high=800, log=True), "tasks.noise": Between(low=0.3, high=0.8)},
    grid={"agent.critic_lr": (6e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2)},
    tuning_seeds=(944, 945),
    seeds=tuple(range(560, 600)),
    cost="iterations",
)

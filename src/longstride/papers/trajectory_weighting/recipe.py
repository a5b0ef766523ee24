"""TD3+BC in mazes, from walks of which few go to their goal, drawn by their returns; and the claim.

The dose is the share of walks that wander. Where none does, all returns are near alike, and nothing is left to prefer.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.papers.trajectory_weighting.method import ByReturn
from longstride.setups import maze
from longstride.stats import Ordering

RECIPE = maze.few_good(maze.near("trajectory_weighting")).replace(agent={"weights": ByReturn()})

_SHARES = {"none": 0.0, "half": 0.5, "most": 0.9}
_weighted = {of: RECIPE.replace(tasks={"wandering": share}) for of, share in _SHARES.items()}
_uniform = {of: arm.replace(agent=arm.agent.replace(weights=None)) for of, arm in _weighted.items()}

CLAIM = Claim(
    name="trajectory_weighting",
    paper="arXiv 2306.13085, abstract and figure on mixed datasets",
    statement="Where most walks of the data wander, an offline method ends better if walks are drawn by their return, and the "
    "more so the more of them wander.",
    recipe=RECIPE,
    arms={f"{of}_weighted": arm for of, arm in _weighted.items()}
    | {f"{of}_uniform": arm for of, arm in _uniform.items()},
    expected=Ordering(relations=("most_weighted > most_uniform by 0.1",)),
    dose=tuple(f"{of}_weighted > {of}_uniform" for of in _SHARES),
    worlds={"tasks.episodes": Between(low=200, high=800, log=True), "tasks.noise": Between(low=0.3, high=0.8)},
    grid={"agent.critic_lr": (6e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2)},
    tuning_seeds=(940, 941),
    seeds=tuple(range(540, 556)),
    cost="iterations",
)

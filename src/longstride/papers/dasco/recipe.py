"""DASCO in the U-maze, from walks many of whose actions are random in its right half; and the claim.

The dose is the share of random actions there. Where there are none, the best of the data is nearly all of it, and one generator can
look like it and earn.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.control import ControlRecipe, GaussianPolicy
from longstride.papers.dasco.method import Adversarial, Supported
from longstride.setups import maze
from longstride.stats import Ordering

_POLICY = GaussianPolicy(trunk=maze.TRUNK)
_CRITIC = Adversarial(**dict(maze.CRITIC), generator=_POLICY)
RECIPE = maze.uneven(maze.offline("dasco", _CRITIC, _POLICY, Supported(), policy_lr=3e-4))


def _alone(arm: ControlRecipe) -> ControlRecipe:
    """One generator."""
    return arm.replace(agent={"levels": (arm.agent.levels[0].replace(critic=_CRITIC.replace(other=0.0)),)})


_UNEVEN = {"even": 0.0, "half": 0.5, "most": 0.8}
_dual = {of: RECIPE.replace(tasks={"uneven": share}) for of, share in _UNEVEN.items()}

CLAIM = Claim(
    name="dasco",
    paper="arXiv 2211.01471, abstract",
    statement="Where the data vary more in some places than in others, a policy with a second generator beside it beats one that "
    "has to look like the data alone, and the more so the more they do.",
    recipe=RECIPE,
    arms={f"{of}_dual": arm for of, arm in _dual.items()} | {f"{of}_one": _alone(arm) for of, arm in _dual.items()},
    expected=Ordering(relations=("most_dual > most_one by 0.1",)),
    dose=tuple(f"{of}_dual > {of}_one" for of in _UNEVEN),
    worlds={"tasks.episodes": Between(low=50, high=400, log=True), "tasks.noise": Between(low=0.1, high=0.5)},
    # and how much D weighs beside Q: it says other things of a policy that has to look like all of the data
    grid={
        "agent.critic_lr": (1.6e-4, 4e-4, 1e-3, 2.5e-3, 6.4e-3, 1.6e-2),
        "agent.levels.0.extraction.weight": (0.1, 0.3, 1.0, 3.0, 10.0),
    },
    tuning_seeds=(962, 963),
    seeds=tuple(range(660, 676)),
    cost="iterations",
)

FINDING = (
    "With a second generator beside it the policy reaches .16 of the goals where the data vary most unevenly and .50 without it, .46 and .67 where "
    "they do less; only where they vary alike is it ahead (.61 and .49)."
)

"""CQL (ReDS) in the U-maze, from walks many of whose actions are random in its right half; and the claim.

The dose is the share of random actions there. Where there are none, the data vary as much in one place as in another, and CQL
stays as near to them everywhere.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.control import SAC, ControlRecipe, GaussianPolicy
from longstride.papers.reds.method import Reweighted
from longstride.setups import maze
from longstride.stats import Ordering

_CRITIC = Reweighted(**dict(maze.CRITIC.replace(conservative=maze.CONSERVATIVE)), rho=GaussianPolicy(trunk=maze.TRUNK))
RECIPE = maze.uneven(
    maze.offline("reds", _CRITIC, GaussianPolicy(trunk=maze.TRUNK), SAC(temperature=0.01), policy_lr=3e-4)
)


def _cql(arm: ControlRecipe) -> ControlRecipe:
    return arm.replace(agent={"levels": (arm.agent.levels[0].replace(critic=_CRITIC.replace(share=0.0)),)})


_UNEVEN = {"even": 0.0, "half": 0.5, "most": 0.8}
_reds = {of: RECIPE.replace(tasks={"uneven": share}) for of, share in _UNEVEN.items()}

CLAIM = Claim(
    name="reds",
    paper="arXiv 2211.01052, abstract",
    statement="Where the data vary more in some places than in others, a reweighted conservative term beats CQL's, and the more "
    "so the more they do.",
    recipe=RECIPE,
    arms={f"{of}_reds": arm for of, arm in _reds.items()} | {f"{of}_cql": _cql(arm) for of, arm in _reds.items()},
    expected=Ordering(relations=("most_reds > most_cql by 0.1",)),
    dose=tuple(f"{of}_reds > {of}_cql" for of in _UNEVEN),
    worlds={"tasks.episodes": Between(low=50, high=400, log=True), "tasks.noise": Between(low=0.1, high=0.5)},
    # and how conservative each is: half of the weight is rho's, so that CQL of the same weight lowers the policy's actions
    # twice as much
    grid={
        "agent.critic_lr": (4e-4, 1e-3, 2.5e-3, 6.4e-3, 1.6e-2),
        "agent.levels.0.critic.conservative.weight": (0.1, 0.3, 1.0, 3.0, 10.0),
    },
    tuning_seeds=(948, 949),
    seeds=tuple(range(580, 612)),
    cost="iterations",
)

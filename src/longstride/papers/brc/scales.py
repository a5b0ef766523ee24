"""BRC where tasks differ in the size of their rewards, which is the dose; and the claim.

Three pendulums are learned at once by one agent, from as many steps and updates. The other arm is the same actor-critic with
the same layers under the squared error, which takes rewards as they are, and is told its task by a row of zeros with a one,
where BRC learns an embedding of it. Where all rewards are of one size, its learning rate can be chosen for that size.
"""

from longstride.claims.claim import Claim
from longstride.control import ControlRecipe, Several, TDCritic
from longstride.papers.brc.recipe import CRITIC, PARTS
from longstride.papers.brc.recipe import RECIPE as BRC
from longstride.setups import pendulum
from longstride.stats import Ordering

_SPREAD = {"equal": 1.0, "ten": 10.0, "hundred": 100.0}
"""By what factor the largest rewards are larger than the least."""


def _apart(recipe: ControlRecipe, factor: float) -> ControlRecipe:
    """The recipe where rewards are scaled by `factor`^-1/2, 1 and `factor`^1/2."""
    scales = (factor**-0.5, 1.0, factor**0.5)
    parts = zip(PARTS.parts.items(), scales, strict=True)
    return recipe.replace(tasks=Several(parts={name: part.replace(reward_scale=of) for (name, part), of in parts}))


_brc = BRC.replace(name="brc/scales", phases=({"iterations": 15, "episodes": 6, "utd": 0.25},), evaluation={"every": 5})
(_level,) = _brc.agent.levels
_plain = _level.replace(data=pendulum.DATA, critic=TDCritic(trunk=CRITIC.trunk, tau=CRITIC.tau, reduction="mean"))
_arms = {"brc": _brc, "squared": _brc.replace(agent=_brc.agent.replace(levels=(_plain,)))}

RECIPE = _apart(_brc, _SPREAD["hundred"])

CLAIM = Claim(
    name="brc/scales",
    paper="arXiv 2505.23150, abstract and ablations of the loss and the normalisation of rewards",
    statement="One network for several tasks keeps their poles up for longer if it learns histograms of returns of one size and "
    "an embedding of the task, and the more so the more their rewards differ in size.",
    measure="upright",
    recipe=RECIPE,
    arms={f"{of}_{name}": _apart(arm, factor) for of, factor in _SPREAD.items() for name, arm in _arms.items()},
    expected=Ordering(relations=("hundred_brc > hundred_squared by 0.1",)),
    dose=tuple(f"{of}_brc > {of}_squared" for of in _SPREAD),
    grid={"agent.critic_lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)},
    tuning_seeds=(980, 981),
    seeds=tuple(range(660, 676)),
    cost="env_steps",
)

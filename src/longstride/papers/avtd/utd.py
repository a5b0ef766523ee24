"""AVTD by the number of updates a step, which is the dose; and the claim.

Arms learn to swing up `Pendulum` from as many steps and, at each ratio, as many updates a member. The panel chooses what acts;
`none` and `norm` are its members alone, so that the panel costs three times their updates, and as many steps. They learn from
all twelve episodes, and the members of the panel from nine: each fourth one is held out. With few updates nothing overfits, and
there is nothing to choose.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.control import ControlRecipe, GaussianPolicy, Pendulum, TDCritic
from longstride.papers.avtd.recipe import EXTRACTION, MEMBERS
from longstride.papers.avtd.recipe import RECIPE as AVTD
from longstride.setups import pendulum
from longstride.stats import Ordering

_RATIOS = {"half": 0.5, "two": 2.0, "eight": 8.0}


def _learning(ratio: float, alone: TDCritic | None = None) -> ControlRecipe:
    one = pendulum.recipe(
        "avtd/utd", pendulum.CRITIC if alone is None else alone, GaussianPolicy(trunk=pendulum.TRUNK), EXTRACTION
    )
    return one.replace(
        tasks=Pendulum(),
        agent=AVTD.agent if alone is None else one.agent,
        phases=({"iterations": 12, "episodes": 1, "utd": ratio},),
        evaluation={"episodes": 20, "every": 4},
    )


RECIPE = _learning(_RATIOS["eight"])

CLAIM = Claim(
    name="avtd/utd",
    paper="arXiv 2304.10466, abstract",
    statement="With many updates to a step, acting by the critic that is least wrong on what is held out keeps a pole up for "
    "longer than a critic that nothing regularises, and the more so the more updates.",
    measure="upright",
    recipe=RECIPE,
    arms={f"{of}_avtd": _learning(ratio) for of, ratio in _RATIOS.items()}
    | {f"{of}_none": _learning(ratio, MEMBERS["none"]) for of, ratio in _RATIOS.items()}
    | {"eight_norm": _learning(_RATIOS["eight"], MEMBERS["norm"])},
    expected=Ordering(relations=("eight_avtd > eight_none by 0.1",)),
    dose=tuple(f"{of}_avtd > {of}_none" for of in _RATIOS),
    reported=Ordering(relations=("eight_norm > eight_avtd",)),
    worlds={"tasks.mass": Between(low=0.7, high=1.0), "tasks.length": Between(low=0.7, high=1.0)},
    grid={"agent.critic_lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)},
    tuning_seeds=(995, 996),
    seeds=tuple(range(700, 710)),
    cost="env_steps",
)

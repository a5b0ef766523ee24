"""floq by the number of updates a step, which is the dose; and the claim.

Arms learn to swing up `Pendulum` from as many steps and, at each ratio, as many updates; they differ in the critic. With many
updates from little data a plain critic has to follow targets that move again and again, and forgets how; a field that has
learned to go to targets is said to go to new ones too. With few updates there is nothing to forget.
"""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.control import ControlCritic, ControlRecipe, Pendulum
from longstride.papers.floq.recipe import RECIPE as FLOQ
from longstride.setups import pendulum
from longstride.stats import Ordering

_RATIOS = {"quarter": 0.25, "one": 1.0, "four": 4.0}


def _learning(ratio: float, critic: ControlCritic | None = None) -> ControlRecipe:
    (level,) = FLOQ.agent.levels
    return FLOQ.replace(
        name="floq/utd",
        tasks=Pendulum(),
        agent={} if critic is None else FLOQ.agent.replace(levels=(level.replace(critic=critic),)),
        phases=({"iterations": 12, "episodes": 1, "utd": ratio},),
        evaluation={"episodes": 20, "every": 4},
    )


RECIPE = _learning(_RATIOS["four"])

CLAIM = Claim(
    name="floq/utd",
    paper="arXiv 2603.04333, on many updates to a step; 2509.06863, abstract",
    statement="With many updates to a step, a critic that carries noise to its value keeps a pole up for longer than a plain "
    "one, and the more so the more updates.",
    measure="upright",
    recipe=RECIPE,
    arms={f"{of}_floq": _learning(ratio) for of, ratio in _RATIOS.items()}
    # a flow is followed by the mean of its two members
    | {f"{of}_plain": _learning(ratio, pendulum.CRITIC.replace(followed="mean")) for of, ratio in _RATIOS.items()},
    expected=Ordering(relations=("four_floq > four_plain by 0.1",)),
    dose=tuple(f"{of}_floq > {of}_plain" for of in _RATIOS),
    worlds={"tasks.mass": Between(low=0.7, high=1.0), "tasks.length": Between(low=0.7, high=1.0)},
    grid={"agent.critic_lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)},
    tuning_seeds=(990, 991),
    seeds=tuple(range(680, 692)),
    cost="env_steps",
)

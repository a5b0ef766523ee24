"""BRC on three pendulums at once, whose rewards differ by a factor of a hundred.

It takes any environments whose actions are a box: `tasks.parts={walks={type="gym",id="Walker2d-v5"},hops={type="gym",
id="Hopper-v5"}}`, with `horizon.limit` and `test_horizon.limit` of the longest, and as many episodes or more in a phase.
"""

from longstride.control import SAC, GaussianPolicy, Pendulum, Several
from longstride.papers.brc.method import BroNet, CategoricalReturns, NormalisedReturns
from longstride.setups import pendulum

CRITIC = CategoricalReturns(trunk=BroNet(width=64), tau=0.01)
POLICY = GaussianPolicy(trunk=BroNet(width=64, depth=1))
PARTS = Several(
    parts={
        "light": Pendulum(mass=0.7, reward_scale=0.1),
        "usual": Pendulum(),
        "short": Pendulum(length=0.7, reward_scale=10.0),
    }
)
_one = pendulum.recipe("brc", CRITIC, POLICY, SAC(temperature=0.1, target_entropy=-0.5))
(_level,) = _one.agent.levels
RECIPE = _one.replace(
    tasks=PARTS,
    agent=_one.agent.replace(levels=(_level.replace(data=NormalisedReturns()),), critic_decay=1e-4),
    phases=({"iterations": 20, "episodes": 3, "utd": 0.5},),
)

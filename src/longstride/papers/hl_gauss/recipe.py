"""HL-Gauss in an actor-critic, in any Gymnasium environment whose actions are a box; see `setups.pendulum`.

The bins have to span the returns: the least and the greatest discounted sum of scaled rewards
(`agent.levels.0.critic.head.low`, `.high`). Of the pendulum a step costs at most 1.63 here, and at a discount of 0.99 that is
-163 for ever.
"""

from longstride.control import SAC, GaussianPolicy
from longstride.models.heads import HLGauss
from longstride.setups import pendulum

HEAD = HLGauss(low=-165.0, high=0.0, bins=101)
RECIPE = pendulum.recipe(
    "hl_gauss",
    pendulum.CRITIC.replace(head=HEAD),
    GaussianPolicy(trunk=pendulum.TRUNK),
    SAC(temperature=0.1),
)

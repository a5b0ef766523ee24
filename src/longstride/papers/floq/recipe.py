"""floq in an actor-critic, in any Gymnasium environment whose actions are a box; see `setups.pendulum`.

The range of values has to be said, as for `hl_gauss` (`agent.levels.0.critic.seen.low`, `.high`).
"""

from longstride.control import SAC, GaussianPolicy
from longstride.models.heads import HLGauss
from longstride.papers.floq.method import FlowReturns
from longstride.setups import pendulum

SEEN = HLGauss(low=-165.0, high=0.0, bins=50, sigma=16.0)
CRITIC = FlowReturns(trunk=pendulum.TRUNK, tau=pendulum.CRITIC.tau, seen=SEEN, noises=4, steps=4, reduction="min")
RECIPE = pendulum.recipe("floq", CRITIC, GaussianPolicy(trunk=pendulum.TRUNK), SAC(temperature=0.1))

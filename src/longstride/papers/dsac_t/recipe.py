"""DSAC-T in any Gymnasium environment whose actions are a box; see `setups.pendulum`."""

from longstride.control import SAC, GaussianPolicy
from longstride.papers.dsac_t.method import GaussianReturns
from longstride.setups import pendulum

RECIPE = pendulum.recipe(
    "dsac_t",
    GaussianReturns(trunk=pendulum.TRUNK, tau=pendulum.CRITIC.tau),
    GaussianPolicy(trunk=pendulum.TRUNK),
    SAC(temperature=0.1, tau=pendulum.CRITIC.tau),
    batch=256,
    slices=2,
)

"""SAC in any Gymnasium environment whose actions are a box; see `setups.pendulum`."""

from longstride.control import SAC, GaussianPolicy
from longstride.setups import pendulum

RECIPE = pendulum.recipe("sac", pendulum.CRITIC, GaussianPolicy(trunk=pendulum.TRUNK), SAC(temperature=0.1, soft=True))

"""TD3 in any Gymnasium environment whose actions are a box; see `setups.pendulum`."""

from longstride.control import TD3, DeterministicPolicy
from longstride.setups import pendulum

RECIPE = pendulum.recipe(
    "td3",
    pendulum.CRITIC.replace(followed="first"),
    DeterministicPolicy(trunk=pendulum.TRUNK, noise=0.2),
    TD3(tau=0.01),
    batch=256,
    slices=2,
)

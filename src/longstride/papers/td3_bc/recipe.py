"""TD3+BC in mazes."""

from longstride.control import TD3, DeterministicPolicy
from longstride.setups import maze

RECIPE = maze.offline(
    "td3_bc",
    maze.CRITIC.replace(followed="first"),
    DeterministicPolicy(trunk=maze.TRUNK),
    TD3(q_weight=2.5, tau=0.02),
).replace(agent={"batch": 256, "slices": 2})

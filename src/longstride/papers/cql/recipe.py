"""CQL in mazes."""

from longstride.control import SAC, GaussianPolicy
from longstride.setups import maze

RECIPE = maze.offline(
    "cql",
    maze.CRITIC.replace(conservative=maze.CONSERVATIVE),
    GaussianPolicy(trunk=maze.TRUNK),
    SAC(temperature=0.01),
    policy_lr=3e-4,
)

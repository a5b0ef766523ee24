"""IQL in mazes."""

from longstride.control import AWR, Expectile, ImplicitQ, NormalPolicy
from longstride.setups import maze

RECIPE = maze.offline(
    "iql",
    ImplicitQ(trunk=maze.TRUNK, tau=0.02, maximiser=Expectile(expectile=0.9)),
    NormalPolicy(trunk=maze.TRUNK),
    AWR(temperature=1 / 3, largest=100.0),
)

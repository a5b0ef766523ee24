"""f-DVL in mazes, by the chi-square."""

from longstride.control import AWR, ImplicitQ, NormalPolicy
from longstride.papers.dual_rl.method import ChiSquare
from longstride.setups import maze

RECIPE = maze.offline(
    "dual_rl",
    ImplicitQ(trunk=maze.TRUNK, tau=0.02, maximiser=ChiSquare()),
    NormalPolicy(trunk=maze.TRUNK),
    AWR(temperature=1 / 3, largest=100.0),
)

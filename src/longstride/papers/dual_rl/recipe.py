"""f-DVL in mazes, by the chi-square."""

from longstride.papers.dual_rl.method import ChiSquare
from longstride.setups import maze

RECIPE = maze.implicit("dual_rl", ChiSquare())

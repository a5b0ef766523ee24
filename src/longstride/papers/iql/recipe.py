"""IQL in mazes."""

from longstride.control import Expectile
from longstride.setups import maze

RECIPE = maze.implicit("iql", Expectile(expectile=0.9))

"""TD3+BC in mazes."""

from longstride.setups import maze

RECIPE = maze.near("td3_bc").replace(agent={"batch": 256, "slices": 2})

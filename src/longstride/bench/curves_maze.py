"""A maze as a Gymnasium environment, for both sides of the benchmark `curves`: `longstride.bench.curves_maze:Maze-v0`
for us, and `curves_maze:Maze-v0` for the peer, whose program lies beside it. It imports nothing of Longstride, and
knows no layout: its rows are given."""

from typing import Any

import gymnasium
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

LIMIT = 100
"""Steps of an episode, as on Gymnasium's frozen lake of 4 x 4."""


class WalledLake(FrozenLakeEnv):
    """Gymnasium's frozen lake with walls for holes, where nothing slips: whoever steps toward a wall or the border
    stays. Each step earns -1. What is observed is the number of the place; actions are left, down, right and up.

    Args:
        rows: `S` is where an episode begins, `G` where it ends; `F` is free, and `H` a wall.
        **kwargs: of the lake, such as `render_mode`.
    """

    def __init__(self, rows: list[str], **kwargs: Any) -> None:
        super().__init__(desc=rows, is_slippery=False, **kwargs)
        letters = "".join(rows)
        for place, ways in self.P.items():
            for way, ((_, ahead, _, _),) in ways.items():
                there = place if letters[ahead] == "H" else ahead
                ways[way] = [(1.0, there, -1.0, letters[there] == "G")]


gymnasium.register("Maze-v0", WalledLake, max_episode_steps=LIMIT)

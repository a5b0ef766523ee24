"""Scaled Q-learning on recorded data of any Gymnasium environment with discrete actions: `tasks.id=CartPole-v1 tasks.data=FILE`.
Several environments with data of their own are one with `tasks = {type = "several", parts = {...}}` in TOML.

See `setups.recorded`. Returns are on [0, 100]: set `agent.levels.0.critic.head.low` and `.high` to what your returns can be, after
`agent.levels.0.data.reward_scale`.
"""

from longstride.control import ControlAgent, Greedy, GymnasiumTasks, Level, UniformPolicy
from longstride.models.heads import Atoms
from longstride.papers.scaled_ql.method import Scaled
from longstride.setups import recorded

_level = Level(
    critic=Scaled(trunk=recorded.TRUNK, head=Atoms(low=0.0, high=100.0)),
    policy=UniformPolicy(),
    extraction=Greedy(),
)
RECIPE = recorded.recipe("scaled_ql/recorded", ControlAgent(levels=(_level,))).replace(
    tasks=GymnasiumTasks(id="CartPole-v1", data="cartpole.hdf5")
)

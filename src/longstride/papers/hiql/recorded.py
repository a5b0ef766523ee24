"""HIQL on recorded data of any Gymnasium environment with goals: `tasks.id=... tasks.data=FILE`.

As it stands: OGBench's point maze (extra `ogbench`), whose data its package downloads (`pointmaze-medium-navigate-v0.npz`).
A goal environment says its goals itself (leave out `tasks.info_goal` and `tasks.test_options`).
"""

from longstride.control import GymnasiumTasks
from longstride.papers.hiql.recipe import hiql
from longstride.setups import recorded

TRUNK = recorded.TRUNK.replace(norm=True, activation="gelu")
RECIPE = recorded.recipe("hiql/recorded", hiql(TRUNK)).replace(
    tasks=GymnasiumTasks(
        id="ogbench:pointmaze-medium-v0",
        info_goal="goal",
        test_options=tuple({"task_id": k} for k in range(1, 6)),
        data="pointmaze-medium-navigate-v0.npz",
    ),
    evaluation={"every": 5},
)

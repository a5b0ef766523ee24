"""HIQL on recorded data of any Gymnasium environment with goals: `tasks.id=... tasks.data=FILE`.

As it stands: OGBench's point maze (extra `ogbench`), whose data its package downloads (`pointmaze-medium-navigate-v0.npz`).
A goal environment says its goals itself (leave out `tasks.info_goal` and `tasks.test_options`).
"""

from longstride.control import ControlEvaluation, ControlRecipe, GymnasiumTasks, TrainingPhase
from longstride.papers.hiql.recipe import hiql
from longstride.setups import recorded

RECIPE = ControlRecipe(
    name="hiql/recorded",
    tasks=GymnasiumTasks(
        id="ogbench:pointmaze-medium-v0",
        info_goal="goal",
        test_options=tuple({"task_id": k} for k in range(1, 6)),
        data="pointmaze-medium-navigate-v0.npz",
    ),
    agent=hiql(recorded.TRUNK.replace(norm=True, activation="gelu")),
    phases=(TrainingPhase(iterations=20, updates=1000),),
    horizon=recorded.HORIZON,
    test_horizon=recorded.HORIZON,
    evaluation=ControlEvaluation(episodes=10, every=5),
)

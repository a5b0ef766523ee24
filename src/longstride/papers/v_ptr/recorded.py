"""V-PTR on recorded data of a Gymnasium environment with goals and a box of actions: `tasks.tasks.id=gymnasium_robotics:PointMaze_UMaze-v3
tasks.tasks.data=FILE`.

Of the walks of the file one in twenty lends its actions and rewards (`tasks.labelled`); of the others observations alone are read. Where walks without
actions have a file of their own, `tasks.type=gym tasks.id=ID tasks.data=WALKS tasks.demonstrations=LABELLED` takes both (its actions are any numbers, and are
not read).
"""

from longstride.control import Conservative, GymnasiumTasks
from longstride.papers.v_ptr.method import FewLabels, TrunkQ, TrunkV
from longstride.papers.v_ptr.recipe import agent, phases
from longstride.setups import recorded

RECIPE = recorded.recipe(
    "v_ptr/recorded",
    agent(
        TrunkQ(trunk=recorded.TRUNK, conservative=Conservative(weight=5.0, actions=4)),
        TrunkV(trunk=recorded.TRUNK),
        reward_scale=1.0,
        batch=256,
    ),
).replace(
    tasks=FewLabels(tasks=GymnasiumTasks(id="gymnasium_robotics:PointMaze_UMaze-v3", data="walks.hdf5")),
    phases=phases(before=10, after=10, updates=1000),
)

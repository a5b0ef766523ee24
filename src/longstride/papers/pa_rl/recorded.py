"""PA-RL on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. Search and weight of the gap are the paper's; ten networks are two here, and their values numbers,
since returns of one environment say nothing of those of another. A search costs some hundred passes of the critic a row, so
an update takes ten times as long as that of `td3_bc/recorded`. The first two iterations clone. Other policies:
`agent.levels.0.policy.type=bins_policy`, `gaussian_policy`.
"""

from longstride.control import Conservative, ControlAgent, FlowPolicy, Level, TrainingPhase
from longstride.papers.pa_rl.method import ActionSearch, Optimised, SearchedTD
from longstride.setups import recorded

_level = Level(
    critic=SearchedTD(
        trunk=recorded.TRUNK,
        reduction="mean",
        conservative=Conservative(weight=0.005, importance=False, calibrated=True),
        search=ActionSearch(),
    ),
    policy=FlowPolicy(trunk=recorded.TRUNK, steps=5),
    extraction=Optimised(search=ActionSearch()),
)
RECIPE = recorded.recipe("pa_rl/recorded", ControlAgent(levels=(_level,))).replace(
    phases=(TrainingPhase(iterations=2, updates=1000, cloning=True), TrainingPhase(iterations=18, updates=1000))
)

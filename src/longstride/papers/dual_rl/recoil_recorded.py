"""ReCOIL on recorded data of any Gymnasium environment, without rewards: `tasks.tasks.id=Hopper-v5 tasks.tasks.data=ANYONES
tasks.tasks.demonstrations=EXPERTS`.

See `setups.recorded`. Files have rewards, which are not read. Where values do not stay within `agent.levels.0.critic.largest`, the paper's
advice is a larger `agent.levels.0.critic.maximiser.scale`.
"""

from longstride.control import AWR, ControlAgent, GymnasiumTasks, Level, NormalPolicy, TrainingPhase
from longstride.papers.dual_rl.method import ExpertSteps, ReCOIL
from longstride.setups import recorded

_level = Level(
    critic=ReCOIL(trunk=recorded.TRUNK),
    policy=NormalPolicy(trunk=recorded.TRUNK),
    extraction=AWR(temperature=1.0, largest=100.0),
)
RECIPE = recorded.recipe("dual_rl/recoil_recorded", ControlAgent(levels=(_level,))).replace(
    tasks=ExpertSteps(tasks=GymnasiumTasks(id="Hopper-v5", data="hopper.hdf5", demonstrations="expert.hdf5")),
    phases=(TrainingPhase(iterations=20, updates=1000, demonstrated=0.5),),
)

"""SAQ on recorded data of any Gymnasium environment with a box of actions: `tasks.id=Hopper-v5 tasks.data=FILE`.

See `setups.recorded`. The first five iterations learn codes. Weight of the gap and codes are the paper's for kitchens. With
IQL: `agent.levels.0.critic.type=implicit_q agent.levels.0.extraction.type=awr agent.levels.0.extraction.largest=100`.
"""

from longstride.control import DQN, CategoricalPolicy, ControlAgent, Greedy, Level, TrainingPhase
from longstride.papers.saq.method import VQCodes
from longstride.setups import recorded

_level = Level(
    codes=VQCodes(trunk=recorded.TRUNK),
    critic=DQN(trunk=recorded.TRUNK, gap=10.0),
    policy=CategoricalPolicy(trunk=recorded.TRUNK),
    extraction=Greedy(),
)
RECIPE = recorded.recipe("saq/recorded", ControlAgent(levels=(_level,))).replace(
    phases=(TrainingPhase(iterations=5, updates=1000, cloning=True), TrainingPhase(iterations=15, updates=1000))
)

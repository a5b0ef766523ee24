"""Cloning from recorded demonstrations of the user's own, a file for each environment: `tasks.data='places/*.npz'`.

See `setups.recorded` for the files. Discrete actions take `agent.levels.0.policy.type=categorical_policy`.
"""

from longstride.control import BehaviourCloning, ControlAgent, Level, NormalPolicy
from longstride.papers.imitation_scaling.method import RecordedPlaces
from longstride.setups import recorded

_level = Level(policy=NormalPolicy(trunk=recorded.TRUNK), extraction=BehaviourCloning())
RECIPE = recorded.recipe("imitation_scaling/recorded", ControlAgent(levels=(_level,))).replace(
    tasks=RecordedPlaces(id="Hopper-v5", data="hoppers/*.hdf5")
)

"""Offline RL on recorded data of any Gymnasium environment with a box of actions, to be held against cloning of the same file
(`rl_or_cloning/cloned`): `tasks.id=Hopper-v5 tasks.data=FILE`, and then `longstride compare`.

See `setups.recorded`. It is `cql/recorded`; the policies of both sides are of one kind.
"""

from longstride.setups import recorded

RECIPE = recorded.recipe("rl_or_cloning/recorded", recorded.conservative())

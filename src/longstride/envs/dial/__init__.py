"""A world with a dial: trails of pages, one rule at every step, and a goal whose distance is one number.

`trail` makes pages, `env` plays them as text, `tasks` is the source of recipes, `demonstrator` walks with habits of its
own, and `habits` measures those of any policy.
"""

from longstride.envs.dial.codes import DialCodes
from longstride.envs.dial.demonstrator import Walker
from longstride.envs.dial.env import DialEnv
from longstride.envs.dial.habits import Habits
from longstride.envs.dial.tasks import Dial
from longstride.envs.dial.trail import KINDS, Place, Trail

__all__ = ["KINDS", "Dial", "DialCodes", "DialEnv", "Habits", "Place", "Trail", "Walker"]

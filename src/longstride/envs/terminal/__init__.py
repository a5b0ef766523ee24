"""Worlds of real programs: a shell in a folder of its own, and two of them whose goals have a distance.

`shell` runs commands. `references` makes notes that refer to one another, `tasks` is their source of tasks, and
`demonstrator` follows them with habits of its own. `programs` makes functions to write, to test and to mend, and
`coding` is their source.
"""

from longstride.envs.terminal.coding import Coding, CodingEnv
from longstride.envs.terminal.demonstrator import Follower
from longstride.envs.terminal.programs import Functions
from longstride.envs.terminal.references import KINDS, References
from longstride.envs.terminal.shell import Shell
from longstride.envs.terminal.tasks import Terminal, TerminalEnv

__all__ = ["KINDS", "Coding", "CodingEnv", "Follower", "Functions", "References", "Shell", "Terminal", "TerminalEnv"]

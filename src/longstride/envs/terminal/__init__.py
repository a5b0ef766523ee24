"""Worlds of real programs: a shell in a folder of its own, and one of them whose goal has a distance.

`shell` runs commands, `references` makes notes that refer to one another, `tasks` is the source of recipes,
`demonstrator` follows the notes with habits of its own.
"""

from longstride.envs.terminal.demonstrator import Follower
from longstride.envs.terminal.references import KINDS, References
from longstride.envs.terminal.shell import Shell
from longstride.envs.terminal.tasks import Terminal, TerminalEnv

__all__ = ["KINDS", "Follower", "References", "Shell", "Terminal", "TerminalEnv"]

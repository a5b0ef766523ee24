"""Processes of somebody else's program, and their end."""

import os
import signal
from contextlib import suppress
from pathlib import Path

ROUNDS = 10
"""Looks at what is left, since what is killed may just have started something."""


def kill_started(pid: int, mark: str) -> None:
    """Kills a process that leads a session, its group, and on Linux whatever it started elsewhere too (`setsid`).

    Args:
        pid: of the process.
        mark: a variable of its environment, `NAME=value`, that no other process has. What it started has inherited it;
            a process that takes the variable away and leaves the group outlives this.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for _ in range(ROUNDS):
        if not (left := _marked(mark.encode())):
            return
        for other in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(other, signal.SIGKILL)


def _marked(mark: bytes) -> list[int]:
    """Live processes with this variable; none where the system does not say."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found

"""What a tree of processes uses: processor time and memory, from Linux's /proc.

What always holds: a process that ends meanwhile is left out and raises nothing.
"""

import os
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def tree(root: int) -> list[int]:
    """The process and everything below it."""
    children: dict[int, list[int]] = {}
    for entry in PROC.glob("[0-9]*"):
        if fields := _stat(int(entry.name)):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, ())
    return found


def processor_seconds(root: int) -> float:
    """Seconds of processor time of a tree so far, with those of its ended children."""
    ticks = sum(sum(map(int, fields[11:15])) for p in tree(root) if (fields := _stat(p)))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory(root: int) -> float:
    """Megabytes (10^6 bytes) of a tree: proportional set size, to which each of n sharing processes adds an n-th."""
    kib = 0
    for process in tree(root):
        with suppress(OSError):
            lines = (PROC / str(process) / "smaps_rollup").read_text().splitlines()
            kib += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return kib * 1024 / 1e6


def _stat(process: int) -> list[str]:
    """The fields of /proc/PID/stat from the third on (state, parent, ...); `[]` for a process that is gone."""
    with suppress(OSError):
        return (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()
    return []

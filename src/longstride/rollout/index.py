"""The index of a trajectory file, a file beside it: where each line ends, its checksum, and its record.

What always holds: it is written after the lines that it describes, and used only as far as it fits them; so it may be
missing, short, damaged or of another file: that costs time, but never gives a wrong record of a line. It holds
nothing that cannot be made again from the trajectories.

It is made of blocks, a line each: the checksum of the rest of the line, and a JSON list of rows.
"""

import json
from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from io import FileIO
from pathlib import Path
from zlib import crc32

from longstride.core.budget import StopReason
from longstride.core.trajectory import EpisodeRecord, TaskKey

BLOCK = 1024
"""Rows of a block at most: what is decoded at once."""
# Rows near each other have many numbers in common, and share the objects.
_DECODER = json.JSONDecoder(parse_int=lru_cache(64)(int), parse_float=lru_cache(64)(float))


class Index:
    """The rows of a trajectory file's first lines, in memory and in the index file.

    Args:
        path: the index file; it is created by the first `save`.
        fits: says of a line's start, end and checksum whether they are those of a line of the trajectory file.
    """

    def __init__(self, path: Path, fits: Callable[[int, int, int], bool]) -> None:
        self.path = path
        self.ends = array("q")
        """Where each line ends, in bytes; the store adds those of lines that have no row yet."""
        self.checksums = array("I")
        """CRC-32 of each line that has a row, with its newline."""
        self.records: list[EpisodeRecord] = []
        self._tasks: dict[TaskKey, TaskKey] = {}
        self._blocks: list[tuple[int, int]] = []
        """Of each block in the file that is right: how many rows there are up to its end, and how many bytes."""
        with suppress(OSError, ValueError, TypeError, OverflowError, RecursionError):
            self._load()
        while self._blocks and not self._fits_to(self._blocks[-1][0], fits):
            self._blocks.pop()
        self._cut(self._blocks[-1][0] if self._blocks else 0)

    def __len__(self) -> int:
        """How many lines have a row."""
        return len(self.records)

    def add(self, checksum: int, record: EpisodeRecord) -> None:
        """Adds the row of the next line, in memory; many records are of one task, and share it."""
        task = self._tasks.setdefault(record.task, record.task)
        self.checksums.append(checksum)
        self.records.append(record if task is record.task else replace(record, task=task))

    def truncate(self, n: int) -> None:
        """Forgets all lines but the first `n`, in memory."""
        while self._blocks and self._blocks[-1][0] > n:
            self._blocks.pop()
        self._cut(n)

    def save(self) -> None:
        """Writes the rows that are not in the file; what cannot be written now (a full disk) is tried the next time."""
        rows, size = self._blocks[-1] if self._blocks else (0, 0)
        if rows == len(self):
            return
        with suppress(OSError), FileIO(self.path, "a") as f:
            f.truncate(size)
            for start in range(rows, len(self), BLOCK):
                end = min(start + BLOCK, len(self))
                block = self._encode(start, end)
                if f.write(block) < len(block):
                    return
                size += len(block)
                self._blocks.append((end, size))

    def _cut(self, n: int) -> None:
        del self.ends[n:], self.checksums[n:], self.records[n:]

    def _fits_to(self, rows: int, fits: Callable[[int, int, int], bool]) -> bool:
        start = self.ends[rows - 2] if rows > 1 else 0
        return fits(start, self.ends[rows - 1], self.checksums[rows - 1])

    def _load(self) -> None:
        size = 0
        with open(self.path, "rb") as f:
            for line in f:
                checksum, _, block = line.partition(b" ")
                if int(checksum, 16) != crc32(block):
                    return
                for end, check, task, facts in _DECODER.decode(block.decode("ascii")):
                    ordinal, reward, success, length, stop, infeasible, group, iteration, role = facts
                    key = TaskKey(*task)
                    key = self._tasks.setdefault(key, key)
                    self.ends.append(end)
                    self.checksums.append(check)
                    self.records.append(
                        EpisodeRecord(
                            key, ordinal, reward, success, length, StopReason(stop), infeasible, group, iteration, role
                        )
                    )
                size += len(line)
                self._blocks.append((len(self), size))

    def _encode(self, start: int, end: int) -> bytes:
        rows = [
            (
                end,
                checksum,
                (e.task.id, e.task.source, e.task.difficulty, e.task.template_id),
                (e.ordinal, e.reward, e.success, e.length, e.stop.value, e.infeasible, e.group, e.iteration, e.role),
            )
            for end, checksum, e in zip(
                self.ends[start:end], self.checksums[start:end], self.records[start:end], strict=True
            )
        ]
        block = json.dumps(rows, separators=(",", ":")).encode("ascii") + b"\n"
        return b"%08x %s" % (crc32(block), block)

"""The trajectory store: an append-only file, one JSON line a trajectory.

What always holds: a batch that `append` returned from is on the disk; a batch that it raised for is not in the file
at all; a last line that a crash left without its end is never read, and is cut off before the next write. Reading
never changes the file, so a run may be looked at while it writes.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from io import FileIO
from pathlib import Path

from longstride.core.errors import RunError
from longstride.core.trajectory import Trajectory

_CHUNK = 1 << 20


class TrajectoryStore:
    """The trajectories of a run in the order of their ordinals.

    Args:
        path: the file; it is created by the first `append`.

    Raises:
        RunError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lines, self._size = self._scan(None)
        self._on_disk = self._bytes()

    def __len__(self) -> int:
        """Whole lines; nothing is parsed."""
        return self._lines

    def __iter__(self) -> Iterator[Trajectory]:
        """Reads one trajectory after the other: those there at opening, and those appended through this store.

        Raises:
            RunError: a line is damaged (its number is named).
        """
        if not self._lines:
            return
        try:
            with open(self.path, "rb") as f:
                for number, line in enumerate(itertools.islice(f, self._lines), 1):
                    try:
                        trajectory = Trajectory.from_json(line.decode("ascii"))
                    except (RunError, UnicodeDecodeError) as e:
                        raise RunError(f"{self.path}, line {number}: {e}") from e
                    yield trajectory
        except OSError as e:
            raise RunError(f"cannot read {self.path}: {e.strerror or e}") from e

    def append(self, trajectories: Sequence[Trajectory]) -> None:
        """Writes a batch and waits until it is on the disk.

        Raises:
            RunError: it could not be written (a full disk), and the file is as it was before; or someone else wrote
                to it.
        """
        size = self._size
        try:
            created = not self.path.exists()
            with self._open() as f:
                try:
                    for trajectory in trajectories:
                        size += _write(f, trajectory.to_json().encode("ascii") + b"\n")
                    os.fsync(f.fileno())
                    if created:
                        _sync_folder(self.path.parent)
                except BaseException:  # Ctrl-C too: half a batch must not stay
                    f.truncate(self._size)
                    raise
        except OSError as e:
            raise RunError(
                f"cannot write {self.path}: {e.strerror or e}; the {self._lines} trajectories before are kept, "
                "this batch is not. Make room and resume the run"
            ) from e
        self._lines, self._size, self._on_disk = self._lines + len(trajectories), size, size

    def truncate(self, n: int) -> None:
        """Keeps the first `n` trajectories: what a checkpoint knew.

        Raises:
            RunError: there are fewer, or the file cannot be written.
        """
        if not 0 <= n <= self._lines:
            raise RunError(
                f"{self.path} holds {self._lines} trajectories, {n} were expected; it is not of this checkpoint"
            )
        _, size = self._scan(n)
        if self.path.exists():
            try:
                with self._open() as f:
                    f.truncate(size)
                    os.fsync(f.fileno())
            except OSError as e:
                raise RunError(f"cannot write {self.path}: {e.strerror or e}") from e
        self._lines, self._size, self._on_disk = n, size, size

    def _open(self) -> FileIO:
        """The file for appending, with whole lines only; unbuffered, so that an error comes from the write that it
        belongs to."""
        if self._bytes() != self._on_disk:
            raise RunError(f"{self.path} was changed by another process; end it, then resume the run")
        file = FileIO(self.path, "a")
        file.truncate(self._size)
        self._on_disk = self._size
        return file

    def _bytes(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def _scan(self, n: int | None) -> tuple[int, int]:
        """How many whole lines there are (at most `n`), and where the last of them ends in bytes."""
        lines = end = start = 0
        try:
            with open(self.path, "rb") as f:
                while (n is None or lines < n) and (chunk := f.read(_CHUNK)):
                    here = chunk.count(b"\n")
                    if n is None or lines + here <= n:
                        end = start + chunk.rfind(b"\n") + 1 if here else end
                        lines += here
                    else:
                        at = -1
                        for _ in range(n - lines):
                            at = chunk.index(b"\n", at + 1)
                        lines, end = n, start + at + 1
                    start += len(chunk)
        except FileNotFoundError:
            return 0, 0
        except OSError as e:
            raise RunError(f"cannot read {self.path}: {e.strerror or e}") from e
        return lines, end


def _write(file: FileIO, data: bytes) -> int:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
    return len(data)


def _sync_folder(folder: Path) -> None:
    """Makes a new file's name durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

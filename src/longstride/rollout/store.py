"""The trajectory store: an append-only file, one JSON line a trajectory, and an index beside it.

What always holds: a batch that `append` returned from is on the disk; a batch that it raised for is not in the file
at all; a last line that a crash left without its end is never read, and is cut off before the next write. Reading
changes neither the file nor its index, so a run may be looked at while it writes. What is in memory of a trajectory is
its record and where its line ends, never its turns. Each line is sealed for its place (`core.sealed`): one that is not
what was written there is an error, not an answer. The file is what counts, and the index spares reading it.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from itertools import islice
from pathlib import Path
from zlib import crc32

from longstride.core.errors import RunError
from longstride.core.files import flush
from longstride.core.sealed import DamagedError, place_of, seal, unseal
from longstride.core.trajectory import EpisodeRecord, Trajectory
from longstride.rollout.index import Index
from longstride.rollout.media import MEDIA, MediaFolder

TRAJECTORIES = "trajectories.jsonl"
"""Name of a run's trajectory file."""
_BUFFER = 1 << 20
_HAS_MEDIA = b',"media":['
"""Part of each line that names media; quotes in texts have a backslash before them."""


class TrajectoryStore:
    """The trajectories of a run in the order of their ordinals.

    Args:
        path: the file; it is created by the first `append`. Its index has the same name, but ends in `.index`; images
            and data are in the folder `media` beside it.

    Raises:
        RunError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self.media = MediaFolder(self.path.parent / MEDIA)
        self._on_disk = self._bytes()
        self._index = Index(self.path.with_suffix(".index"), self._is_line)
        self._ends = self._index.ends
        self._scan()

    def __len__(self) -> int:
        """Whole lines; nothing is parsed."""
        return len(self._ends)

    def __iter__(self) -> Iterator[Trajectory]:
        """Reads one trajectory after the other: those there at opening, and those appended through this store.

        Raises:
            RunError: a line is damaged (its number is named).
        """
        for k, line in enumerate(self._lines(0)):
            yield self._parse(k, line)

    def __getitem__(self, k: int) -> Trajectory:
        """Reads the trajectory at a place counted from 0 (or, if negative, from the end).

        Raises:
            IndexError: there is none.
            RunError: see `read`.
        """
        return self.read([k])[0]

    def read(self, places: Iterable[int]) -> list[Trajectory]:
        """Reads the trajectories at these places (see `__getitem__`), and no others.

        In the store of a run the place of a trajectory is its ordinal.

        Raises:
            IndexError: there is no such place.
            RunError: a line is damaged, or is not the one in the index (its number is named).
        """
        found = []
        try:
            with open(self.path, "rb") as f:
                for place in places:
                    k = range(len(self))[place]
                    f.seek(self._start(k))
                    found.append(self._parse(k, f.read(self._ends[k] - self._start(k))))
        except OSError as e:
            raise RunError(f"cannot read {self.path}: {e.strerror or e}") from e
        return found

    def check(self, n: int) -> None:
        """Reads the first `n` lines, the file of a run: each has to be what was written there, its row in the index
        the one of this line, its ordinal its place, and its images and data have to be there.

        Raises:
            RunError: one is damaged (its number is named).
        """
        for k, line in enumerate(islice(self._lines(0), n)):
            self._unseal(k, line)
            if _HAS_MEDIA in line:
                self._parse(k, line)
            if k < len(self._index) and crc32(line) != self._index.checksums[k]:
                raise self._damaged(k, f"it is not the one that {self._index.path.name} is about; remove that file")
        self._read_records(n)
        for k, record in enumerate(islice(self._index.records, n)):
            if record.ordinal != k:
                raise self._damaged(k, f"expected the episode of ordinal {k}, got {record.ordinal}")

    @property
    def records(self) -> Sequence[EpisodeRecord]:
        """What replay needs to know of each trajectory; it grows with `append`. Lines without a row in the index are
        read the first time.

        Raises:
            RunError: a line is damaged (its number is named).
        """
        self._read_records(len(self))
        return self._index.records

    def _read_records(self, n: int) -> None:
        """Makes the rows of the first `n` lines that have none."""
        known = len(self._index)
        for k, line in enumerate(islice(self._lines(known), max(n - known, 0)), known):
            self._index.add(crc32(line), self._parse(k, line).record())

    def append(self, trajectories: Sequence[Trajectory]) -> None:
        """Writes a batch and waits until it is on the disk.

        Raises:
            RunError: it could not be written (a full disk), and the file is as it was before; or someone else wrote
                to it.
        """
        size, ends, rows = self._size, [], []
        try:
            self.media.add(m for t in trajectories for m in t.media)
            created = not self.path.exists()
            with self._open() as f:
                try:
                    for k, trajectory in enumerate(trajectories, len(self)):
                        line = seal(trajectory.to_json(), place_of(k)).encode("ascii") + b"\n"
                        size += _write(f, line)
                        ends.append(size)
                        rows.append((crc32(line), trajectory.record()))
                    os.fsync(f.fileno())
                    if created:
                        flush(self.path.parent)
                except BaseException:  # Ctrl-C too: half a batch must not stay
                    f.truncate(self._size)
                    raise
        except OSError as e:
            raise RunError(
                f"cannot write {self.path}: {e.strerror or e}; the {len(self)} trajectories before are kept, "
                "this batch is not. Make room and resume the run"
            ) from e
        complete = len(self._index) == len(self)
        self._ends.extend(ends)
        self._on_disk = size
        if complete:
            for row in rows:
                self._index.add(*row)
            self._index.save()

    def truncate(self, n: int) -> None:
        """Keeps the first `n` trajectories: what a checkpoint knew.

        Raises:
            RunError: there are fewer, or the file cannot be written.
        """
        if not 0 <= n <= len(self):
            raise RunError(
                f"{self.path} holds {len(self)} trajectories, {n} were expected; it is not of this checkpoint"
            )
        size = self._start(n)
        if self.path.exists():
            try:
                with self._open() as f:
                    f.truncate(size)
                    os.fsync(f.fileno())
            except OSError as e:
                raise RunError(f"cannot write {self.path}: {e.strerror or e}") from e
        self._index.truncate(n)
        self._on_disk = size

    @property
    def _size(self) -> int:
        """Bytes of whole lines."""
        return self._start(len(self))

    def _start(self, k: int) -> int:
        return self._ends[k - 1] if k else 0

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

    def _is_line(self, start: int, end: int, checksum: int) -> bool:
        """Whether the file has a line of this checksum there."""
        if not 0 <= start < end <= self._on_disk:
            return False
        try:
            with open(self.path, "rb") as f:
                f.seek(start)
                return crc32(f.read(end - start)) == checksum
        except OSError:
            return False

    def _scan(self) -> None:
        """Finds the ends of the whole lines behind those that the index knows."""
        end = self._size
        try:
            with open(self.path, "rb", _BUFFER) as f:
                f.seek(end)
                for line in f:
                    if line.endswith(b"\n"):
                        end += len(line)
                        self._ends.append(end)
        except FileNotFoundError:
            return
        except OSError as e:
            raise RunError(f"cannot read {self.path}: {e.strerror or e}") from e

    def _lines(self, first: int) -> Iterator[bytes]:
        """The whole lines from a place on."""
        if first == len(self):
            return
        try:
            with open(self.path, "rb") as f:
                f.seek(self._start(first))
                yield from islice(f, len(self) - first)
        except OSError as e:
            raise RunError(f"cannot read {self.path}: {e.strerror or e}") from e

    def _parse(self, k: int, line: bytes) -> Trajectory:
        text = self._unseal(k, line).decode("ascii")
        try:
            return Trajectory.from_json(text, self.media.find)
        except RunError as e:
            raise self._damaged(k, e) from e

    def _unseal(self, k: int, line: bytes) -> bytes:
        try:
            return unseal(line[:-1], place_of(k))
        except DamagedError as e:
            raise self._damaged(k, e) from e

    def _damaged(self, k: int, why: object) -> RunError:
        return RunError(f"{self.path}, line {k + 1}: {why}")


def _write(file: FileIO, data: bytes) -> int:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
    return len(data)

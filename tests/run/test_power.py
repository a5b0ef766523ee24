"""What a power cut leaves, on a simulated disk that loses whatever was not flushed; and an error at every write.

A disk may lose names that were not flushed (`late`), or keep names and lose the content behind them (`early`): a run
has to survive both, at every moment."""

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers import content, rows_of, trajectories_of, weights_hash
from one_page import Watcher, make_recipe, save_model

from longstride.core.errors import LongstrideError
from longstride.core.files import trouble_of
from longstride.run.checkpoint import latest_checkpoint
from longstride.run.loop import train
from longstride.run.recipe import Recipe

CUTS = int(os.environ.get("LONGSTRIDE_CUTS", 5))
"""Moments of each kind that runs are resumed from; 0 for all."""
FAULTS = int(os.environ.get("LONGSTRIDE_FAULTS", 3))
"""Moments at which an error is made; 0 for all."""
SOAK = "LONGSTRIDE_SOAK" in os.environ
"""Whether disks are mounted, and tensors cut at more places."""
FULL = 40
"""Sizes of a disk that is full in the middle of a run."""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    model = save_model(tmp_path_factory.mktemp("models") / "tiny")
    return make_recipe(model, iterations=2, episodes_per_iteration=6)


@pytest.fixture(scope="module")
def whole(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("power") / "whole"
    train(recipe, run)
    return run


def same(a: Path, b: Path) -> bool:
    told = [[content(t) for t in trajectories_of(run)] for run in (a, b)]
    return rows_of(a) == rows_of(b) and told[0] == told[1] and weights_hash(a) == weights_hash(b)


def some(moments: list[Any], most: int) -> list[Any]:
    """Evenly spaced ones, the last among them."""
    return (
        moments if not most else [moments[(k + 1) * len(moments) // most - 1] for k in range(min(most, len(moments)))]
    )


class Disk:
    """What of a folder is on the disk: the content of each file, and the names in each folder, as of their flushes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.content: dict[int, bytes] = {}
        self.names: dict[int, dict[str, tuple[int, bool]]] = {root.stat().st_ino: {}}
        self._open: list[int] = []  # an inode that is open is not given to another file

    def flushed(self, handle: int) -> None:
        found = os.fstat(handle)
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if not path.is_relative_to(self.root):
            return
        self._open.append(os.dup(handle))
        if path.is_dir():
            self.names[found.st_ino] = {p.name: (p.stat().st_ino, p.is_dir()) for p in path.iterdir()}
        else:
            self.content[found.st_ino] = path.read_bytes()

    def close(self) -> None:
        for handle in self._open:
            os.close(handle)

    def late(self) -> dict[str, bytes | None]:
        """What is left where a name that was not flushed is lost: by path, None for a folder."""
        found: dict[str, bytes | None] = {}

        def walk(folder: int, at: str) -> None:
            for name, (inode, is_folder) in self.names.get(folder, {}).items():
                if is_folder:
                    found[at + name] = None
                    walk(inode, f"{at}{name}/")
                else:
                    found[at + name] = self.content.get(inode, b"")

        walk(self.root.stat().st_ino, "")
        return found

    def early(self) -> dict[str, bytes | None]:
        """What is left where names are kept at once, and content that was not flushed is lost."""
        return {
            str(p.relative_to(self.root)): None if p.is_dir() else self.content.get(p.stat().st_ino, b"")
            for p in sorted(self.root.rglob("*"))
        }


def restore(left: dict[str, bytes | None], folder: Path) -> None:
    folder.mkdir()
    for name, data in left.items():
        (folder / name).mkdir() if data is None else (folder / name).write_bytes(data)


@contextmanager
def cut_at_every_flush(root: Path, patch: pytest.MonkeyPatch) -> Iterator[list[dict[str, bytes | None]]]:
    """Gathers what the disk would have after a power cut: before and after each flush, and after each new name."""
    disk, states = Disk(root), []

    def look() -> None:
        for left in (disk.late(), disk.early()):
            if left not in states[-4:]:
                states.append(left)

    def wrap(real: Callable[..., Any], flush: bool) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            look()
            found = real(*args, **more)
            if flush:
                disk.flushed(args[0])
            look()
            return found

        return call

    with patch.context() as p:
        p.setattr(os, "fsync", wrap(os.fsync, flush=True))
        for name in ("rename", "replace"):
            p.setattr(os, name, wrap(getattr(os, name), flush=False))
        yield states
    disk.close()


def test_after_a_power_cut_a_run_goes_on_to_the_numbers_of_one_that_had_none(recipe, whole, tmp_path, monkeypatch):
    (tmp_path / "disk").mkdir()
    with cut_at_every_flush(tmp_path / "disk", monkeypatch) as states:
        train(recipe, tmp_path / "disk" / "run")
    assert len(states) > 70 and same(tmp_path / "disk" / "run", whole)
    reached = []
    for k, left in enumerate(some(states, CUTS)):
        restore(left, tmp_path / f"cut-{k}")
        run = tmp_path / f"cut-{k}" / "run"
        checkpoint = latest_checkpoint(run)
        reached.append(-1 if checkpoint is None else checkpoint.numbers["iteration"])
        train(recipe, run, resume=True)
        assert same(run, whole), left.keys()
    assert reached[-1] == 2 and 1 in reached


# an error at every write

WRITES = {"os.mkdir", "os.remove", "os.rename", "os.truncate", "shutil.rmtree"}
"""Audit events of Python that are a write, besides opening a file for it and flushing it."""


class Fault:
    """Raises an error at one write below a folder, and at all of them after it where it lasts."""

    def __init__(self) -> None:
        self.folder, self.at, self.seen = "", 0, 0
        self.error, self.lasts = 0, False
        sys.addaudithook(self.audit)

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.folder:
            return
        opened = event == "open" and (args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if (opened or event in WRITES) and str(args[0]).startswith(self.folder):
            self.touch(str(args[0]))

    def touch(self, path: str) -> None:
        self.seen += 1
        if self.seen == self.at or self.lasts and self.seen > self.at > 0:
            raise OSError(self.error, os.strerror(self.error), path)


FAULT = Fault()


@contextmanager
def fault(folder: Path, at: int, error: int, lasts: bool, patch: pytest.MonkeyPatch) -> Iterator[Fault]:
    """Within it, the write of that number fails; 0 counts them."""
    FAULT.folder, FAULT.at, FAULT.seen, FAULT.error, FAULT.lasts = str(folder), at, 0, error, lasts
    real = os.fsync

    def flush(handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        if path.startswith(FAULT.folder):
            FAULT.touch(path)
        real(handle)

    with patch.context() as p:
        p.setattr(os, "fsync", flush)
        try:
            yield FAULT
        finally:
            FAULT.folder = ""


@pytest.mark.parametrize(
    ("error", "lasts"), [(errno.ENOSPC, True), pytest.param(errno.EROFS, False, marks=pytest.mark.slow)]
)
def test_an_error_at_any_write_is_one_line_and_the_run_goes_on_from_there(
    recipe, whole, tmp_path, monkeypatch, error, lasts
):
    with fault(tmp_path / "count", 0, 0, False, monkeypatch) as counted:
        train(recipe, tmp_path / "count")
    moments = range(1, counted.seen + 1)
    for at in some(list(moments), FAULTS):
        run = tmp_path / f"run-{at}"
        with fault(run, at, error, lasts, monkeypatch):
            try:
                train(recipe, run)
            except (LongstrideError, OSError) as e:
                trouble = trouble_of(e)
                assert trouble is not None and trouble.errno == error and "\n" not in str(e), at
        train(recipe, run, resume=True)
        assert same(run, whole), at


# errors inside the writes of libraries, which Python does not see: safetensors writes by itself


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Within it no file of this process can grow beyond so many bytes."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, old[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, ignored)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99] if SOAK else [0.5])
@pytest.mark.parametrize("name", ["model.safetensors", "trainer.safetensors"])
def test_tensors_whose_write_stops_halfway_are_one_line_and_the_run_goes_on(recipe, whole, tmp_path, name, share):
    run, checkpoint = tmp_path / "run", whole / "checkpoints" / "000002"
    with pytest.raises(KeyboardInterrupt):
        train(recipe, run, Watcher(stop_after=2))
    others = [p.stat().st_size for p in checkpoint.iterdir() if p.name != name and name.startswith("trainer")]
    limit = max(int(share * (checkpoint / name).stat().st_size), *(size + 1 for size in others), 0)
    with largest_file(limit), pytest.raises(LongstrideError) as e:
        train(recipe, run, resume=True)
    trouble = trouble_of(e.value)
    assert trouble is not None and trouble.errno == errno.EFBIG and "\n" not in str(e.value)
    train(recipe, run, resume=True)
    assert same(run, whole)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, of 20 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", folder], capture_output=True)
    if done.returncode:
        pytest.skip("may not mount a disk here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)  # tensors of it may still be in use


@pytest.mark.skipif(not SOAK or shutil.which("mount") is None, reason="needs LONGSTRIDE_SOAK=1 and mount")
def test_a_disk_that_is_full_anywhere_is_one_line_and_the_run_goes_on(recipe, whole, disk):
    """Its size decides at which byte of which file."""
    needed = sum(-(-p.stat().st_size // 4096) * 4096 for p in whole.rglob("*") if p.is_file())
    for k in range(FULL):
        run = disk / f"run-{k}"
        resize(disk, max(4096 * 8, needed * (k + 1) // FULL - 4096 * (k % 2)))
        try:
            train(recipe, run)
        except (LongstrideError, OSError) as e:
            trouble = trouble_of(e)
            assert trouble is not None and trouble.errno == errno.ENOSPC and "\n" not in str(e), k
        resize(disk, 20_000_000)
        train(recipe, run, resume=True)
        assert same(run, whole), k
        shutil.rmtree(run)


def resize(disk: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)

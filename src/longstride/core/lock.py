"""One writer for a folder: a lock that a process holds while it writes there.

What always holds: of all processes that ask for it, on every machine that sees the folder, one has it; it ends with its
process, however that ends, and no process that was forked from it has it. The file `lock` names the holder and is
removed with the lock: one that a killed process left is nobody's.
"""

import fcntl
import os
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from longstride.core.errors import LongstrideWarning, RunError
from longstride.core.files import make_folder

LOCK = "lock"
"""The name of the file."""
_handles: set[int] = set()
"""Of the locks that this process holds."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Within it this process alone writes in a folder, which is made, and removed again where nothing was written. Of
    several processes that torchrun started the first one stands for all.

    Raises:
        RunError: another process writes there (it is named); or there is a file where the folder should be.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and os.environ.get("RANK", "0") != "0":
        yield
        return
    try:
        make_folder(folder)
    except (FileExistsError, NotADirectoryError) as e:
        raise RunError(f"{folder} cannot be made a folder: {e.filename} is a file; choose another folder") from e
    path = folder / LOCK
    handle = _take(path)
    _handles.add(handle)
    try:
        yield
    finally:
        if handle in _handles:  # not in a process that was forked meanwhile
            _handles.remove(handle)
            with suppress(OSError):
                path.unlink()
            os.close(handle)
            with suppress(OSError):  # there is something in it
                folder.rmdir()


def _take(path: Path) -> int:
    """Opens and locks the file."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(handle, 200).decode("utf-8", "replace").strip()
            os.close(handle)
            raise RunError(
                f"{path.parent} is being written by {holder or 'another process'}; wait until that has ended, or end "
                "it, and try again"
            ) from None
        except OSError as e:
            warnings.warn(
                f"{path.parent} cannot be locked ({e.strerror}): see to it yourself that no other process writes there",
                LongstrideWarning,
                stacklevel=2,
            )
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                with suppress(OSError):  # a full disk; the lock holds without
                    os.ftruncate(handle, 0)
                    since = time.strftime("%Y-%m-%d %H:%M:%S %Z")
                    os.write(handle, f"process {os.getpid()} on {socket.gethostname()} since {since}\n".encode())
                return handle
        os.close(handle)  # it was removed between its opening and its locking


def _forget() -> None:
    """A forked process lets go: the lock is its parent's, and ends with that."""
    for handle in _handles:
        os.close(handle)
    _handles.clear()


os.register_at_fork(after_in_child=_forget)

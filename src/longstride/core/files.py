"""Writing files that outlive what may happen to the process and to the machine.

What always holds: a reader sees the old content or the new one, never a part; what was flushed is there after a power
cut. A file's content and its name in the folder are two things, and each is flushed by its own call.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from longstride.core.errors import RunError

FULL = frozenset((errno.ENOSPC, errno.EDQUOT))
"""Numbers of the errors of a full disk."""
TROUBLE = FULL | {
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.EFBIG,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENAMETOOLONG,
    errno.ENOTDIR,
    errno.ELOOP,
    errno.ESTALE,
}
"""Numbers of the errors of a machine that are nobody's bug: full, read-only, forbidden, broken, too many, too long."""
_NUMBER = re.compile(r"\(os error (\d+)\)")


def flush(path: Path) -> None:
    """Waits until the content of a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomically(path: Path, text: str | bytes) -> None:
    """Replaces a file's content, and waits until it is on the disk."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode("utf-8"))
        f.flush()
        os.fsync(f.fileno())
    os.replace(partial, path)
    flush(path.parent)


def make_folder(path: Path) -> None:
    """Makes a folder and those above it, and flushes the names of all that are new.

    Raises:
        OSError: it cannot be made; there where nothing can, as in `/proc`, without permission.
    """
    if not path.is_dir():
        make_folder(path.parent)
        try:
            path.mkdir(exist_ok=True)
        except FileNotFoundError:  # the folder above is there
            raise PermissionError(errno.EPERM, "nothing can be made there", str(path)) from None
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, "it is a file, and a folder is wanted there", str(path)) from None
        flush(path.parent)


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """An empty folder to fill, which takes its place as `target` when the block has ended well, and is gone otherwise.

    Raises:
        RunError: the target holds something, or was filled by another process meanwhile.
        OSError: see `make_folder`.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise RunError(f"{target} is not empty; choose another place")
    target = target.absolute()
    make_folder(target.parent)
    try:
        held = TemporaryDirectory(prefix=f".{target.name}.part-", dir=target.parent)
    except FileNotFoundError:  # the folder above is there
        raise PermissionError(errno.EPERM, "nothing can be made there", str(target)) from None
    with held as beside:
        part = Path(beside, "new")
        part.mkdir()
        yield part
        try:
            part.rename(target)
        except OSError as e:
            if e.errno != errno.ENOTEMPTY:
                raise
            raise RunError(f"{target} was filled by another process meanwhile; choose another place") from e


def special_in(folder: Path) -> Path | None:
    """What in a folder is neither a file nor a folder, such as a pipe: whoever reads it waits for ever."""
    with os.scandir(folder) as found:
        for entry in found:
            if not entry.is_file() and not entry.is_dir() and os.path.exists(entry.path):
                return Path(entry.path)
    return None


def system_error(error: Exception) -> OSError | None:
    """The error of the system behind an error of safetensors or tokenizers, which say it in words alone; None where
    there is none."""
    number = _NUMBER.search(str(error))
    return OSError(int(number[1]), os.strerror(int(number[1]))) if number else None


def trouble_of(error: BaseException) -> OSError | None:
    """The error of the machine that it is, or was caused by; None for any other."""
    found = (e for e in (error, error.__cause__) if isinstance(e, OSError) and e.errno in TROUBLE)
    return next(found, None)


def explain(trouble: OSError) -> str:
    """`the disk is full: FILE could not be written`, or what else it is."""
    if trouble.errno in FULL:
        return f"the disk is full: {trouble.filename or 'a file'} could not be written"
    return f"{trouble.filename or 'a file'} cannot be used: {trouble.strerror}"

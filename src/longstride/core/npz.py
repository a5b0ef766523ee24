"""Arrays from files of others.

What always holds: nothing is unpickled, and no array is unpacked that says it is larger than `MOST_BYTES`; whatever
goes wrong with a file is one line that names it.
"""

import zipfile
from collections.abc import Container, Iterator
from contextlib import contextmanager

import numpy as np

from longstride.core.errors import LongstrideError, RunError

MOST_BYTES = 1 << 33
"""Of an array: what a file of a few kilobytes may say that it unpacks to."""


def read_npz(name: str, wanted: Container[str]) -> dict[str, np.ndarray]:
    """The arrays of a npz file, by name; those that are not wanted are empty.

    Raises:
        RunError: it cannot be read, or a wanted array is too large.
    """
    with readable(name, ".npz"), zipfile.ZipFile(name) as parts, np.load(name, allow_pickle=False) as file:
        keys = [key for key in file.files if key in wanted]
        for key in keys:
            check_size(name, key, parts.getinfo(f"{key}.npy").file_size)
        return {key: file[key] if key in keys else np.zeros(0) for key in file.files}


def check_size(name: str, key: str, size: int) -> None:
    """Raises: RunError where an array of a file has more bytes than are read."""
    if size > MOST_BYTES:
        raise RunError(f"{name}: {key} unpacks to {size:,} bytes, and at most {MOST_BYTES:,} are read")


@contextmanager
def readable(name: str, form: str) -> Iterator[None]:
    """What reading a file of a form may raise, as a `RunError` that names it."""
    try:
        yield
    except LongstrideError:
        raise
    except Exception as e:  # a damaged header raises whatever its parser does
        first = str(e).partition("\n")[0]
        raise RunError(f"{name} is damaged, or no {form} file: {first}") from e

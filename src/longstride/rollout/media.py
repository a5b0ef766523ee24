"""The media of a run: images and data of its trajectories, a file each, named by the SHA-256 of its bytes.

What always holds: a file is written once, whole, and before any line that names it; what is read is what its name says,
whoever wrote it; names from a file become no path but one in the folder.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from weakref import WeakValueDictionary

from longstride.core.content import LARGEST, Media
from longstride.core.errors import RunError
from longstride.core.files import make_folder, write_atomically

MEDIA = "media"
"""Name of a run's folder of media."""
_NAME = re.compile(r"[0-9a-f]{64}")


class MediaFolder:
    """A run's media.

    Args:
        folder: made by the first `add`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: WeakValueDictionary[str, Media] = WeakValueDictionary()
        """What is in the folder, by name, as long as somebody holds it."""

    def add(self, media: Iterable[Media]) -> None:
        """Writes what is not there, and waits until it is on the disk.

        Raises:
            OSError: it cannot be written.
        """
        for each in media:
            if each.name in self._known:
                continue
            path = self.folder / each.name
            if not path.is_file() or path.read_bytes() != each.data:
                make_folder(self.folder)
                write_atomically(path, each.data)
            self._known[each.name] = each

    def find(self, name: str, kind: str) -> Media:
        """The media of a name.

        Raises:
            RunError: there is none, or not the one that the name says.
        """
        if (known := self._known.get(name)) is not None and known.kind == kind:
            return known
        if not _NAME.fullmatch(name):
            raise RunError(f"expected a SHA-256 as the name of an image or data, got {name[:80]!r}")
        path = self.folder / name
        try:
            if not path.is_file():
                raise RunError(f"{path} is missing, and an episode refers to it")
            if path.stat().st_size > LARGEST:
                raise RunError(f"{path} is larger than {LARGEST} bytes; it is not what was written there")
            found = Media(path.read_bytes(), kind)
        except (OSError, ValueError) as e:
            raise RunError(f"cannot read {path}: {e}") from e
        if found.name != name:
            raise RunError(f"{path} is damaged: its bytes are not those of its name")
        self._known[name] = found
        return found

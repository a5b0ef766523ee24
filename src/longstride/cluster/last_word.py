"""What is said when Ray ends this process: it does so at once, without an exception, where its own process on this
machine (the raylet) or the head has died. No torch, no Ray.
"""

import subprocess
import sys
from types import TracebackType
from typing import Self

LAST_WORD = (
    "error: this process was ended from outside; Ray does so where its own process on this machine (the raylet) or its "
    "head has died: see Ray's log above, or the system's where memory ran out; the last checkpoint is whole: resume "
    "the run"
)
_WITNESS = "import sys; sys.stdin.buffer.read(1) or print(sys.argv[1], file=sys.stderr)"


class LastWord:
    """A context manager. A second process says `LAST_WORD` if this one ends within it, by whatever."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-S", "-c", _WITNESS, LAST_WORD]
        self._witness = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._witness.communicate(b".")

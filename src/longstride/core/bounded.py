"""What a stranger's text may cost: work in a child process, with a limit of time and of memory.

What always holds: the child has its time of a processor, however busy the machine is; `text_of` ends within `PATIENCE`
times that, and leaves no process behind; the child takes no more memory than it was allowed, and has no other effect
than its answer. POSIX only, as all of Longstride.
"""

import json
import os
import resource
import select
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path

MOST_TEXT = 1 << 20
"""Bytes of an answer."""
PATIENCE = 60
"""Of a child that waits for a processor, or for nothing: seconds by the clock for each second of its time."""


class LimitError(Exception):
    """A limit was met; the message says which, as the end of a sentence."""


class RefusedError(Exception):
    """The work itself raised an error, whose message this is."""


def text_of(work: Callable[[], str], seconds: float, megabytes: int) -> str:
    """The text that `work` makes, in a copy of this process.

    Args:
        work: must not need other threads.
        seconds: of a processor that it may take.
        megabytes: it may take beside what this process has.

    Raises:
        LimitError: it took more, or made more than `MOST_TEXT`.
        RefusedError: it raised an error.
    """
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, which the child does not need
        child = os.fork()
    if child == 0:
        try:
            os.close(read)
            _answer(work, write, seconds, megabytes)
        finally:
            os._exit(0)
    os.close(write)
    try:
        answer = _read(read, PATIENCE * seconds)
    finally:
        os.close(read)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
        raise LimitError(f"takes more than {seconds:g} s")
    if not answer:
        raise LimitError(f"takes more than {megabytes} MB")
    found = json.loads(answer)
    if "text" not in found:
        raise RefusedError(found["error"])
    return found["text"]


def _answer(work: Callable[[], str], pipe: int, seconds: float, megabytes: int) -> None:
    """What the child does: it says what it found; nothing where memory ran out."""
    statm = Path("/proc/self/statm")
    if statm.exists():  # elsewhere the time bounds the memory too
        pages = int(statm.read_text().split()[0])
        size = pages * resource.getpagesize() + (megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        answer = json.dumps({"text": work()})
    except MemoryError:
        return
    except Exception as e:
        answer = json.dumps({"error": f"{type(e).__name__}: {str(e)[:200]}"})
    data = memoryview(answer.encode("ascii"))
    while data:
        data = data[os.write(pipe, data) :]


def _read(pipe: int, seconds: float) -> bytes:
    """All that comes through a pipe."""
    until, data = time.monotonic() + seconds, b""
    while select.select([pipe], [], [], max(0.0, until - time.monotonic()))[0]:
        if not (more := os.read(pipe, 1 << 16)):
            return data
        data += more
        if len(data) > MOST_TEXT:
            raise LimitError(f"makes more than {MOST_TEXT} bytes of text")
    raise LimitError(f"takes more than {seconds:g} s")

"""Peers in other processes, and perhaps other environments, that are asked several times: one JSON object a line.

What always holds: no answer is waited for beyond its time; a peer that failed stays failed; when it is closed, its
processes are gone, and with them what they held of a card.
"""

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, Self

from longstride.core.errors import ConfigError, RunError

GRACE = 10.0
"""Seconds that a peer has to end by itself."""


def installed(python: str, package: str) -> str | None:
    """The version of a package in the environment of a Python; None where it is not installed.

    Raises:
        ConfigError: this Python cannot be run.
    """
    program = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
    try:
        found = subprocess.run([python, "-c", program, package], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise ConfigError(f"--peer {python} cannot be run ({e}); name the Python of an environment") from e
    return found.stdout.strip() or None


class Peer:
    """A program that answers questions.

    Args:
        python: runs it.
        program: reads questions from standard input and writes as many answers to standard output.
        environment: variables it has beside ours.
    """

    def __init__(self, python: str, program: Path, environment: Mapping[str, str] | None = None) -> None:
        self._name = program.stem
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self._came = b""
        try:
            self._process = subprocess.Popen(
                [python, str(program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env=os.environ | dict(environment or {}),
                start_new_session=True,
            )
        except OSError as e:
            self._said.close()
            raise ConfigError(f"--peer {python} cannot be run ({e}); name the Python of an environment") from e

    def ask(self, question: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """The answer to a question.

        Raises:
            RunError: there was none within so many seconds, or the peer ended; it is closed then.
        """
        assert self._process.stdin and self._process.stdout
        until = time.monotonic() + seconds
        Thread(target=self._tell, args=(json.dumps(question).encode() + b"\n",), daemon=True).start()
        while b"\n" not in self._came:
            left = until - time.monotonic()
            if self._process.stdout.closed:
                raise RunError(f"{self._name} has ended")
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                self.close(0)
                raise RunError(f"{self._name} did not answer within {max(seconds, 0):.0f} s")
            new = os.read(self._process.stdout.fileno(), 1 << 16)
            if not new:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(GRACE)
                words = self._last_words()
                self.close()
                raise RunError(f"{self._name} ended: {words}")
            self._came += new
        line, _, self._came = self._came.partition(b"\n")
        return json.loads(line)

    def close(self, grace: float = GRACE) -> None:
        """Ends it, with all processes that it started, after so many seconds in which it may do so itself."""
        assert self._process.stdin and self._process.stdout
        if not grace:
            self._kill()
        with suppress(OSError):  # it did not read the last question
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace)
        self._kill()
        self._process.wait()
        self._process.stdout.close()
        self._said.close()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _tell(self, line: bytes) -> None:
        assert self._process.stdin
        with suppress(OSError, ValueError):  # it ended: whoever waits for the answer sees that
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1][-300:] if lines else "it said nothing"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

"""Programs of others: what they may use of the machine, what they print, and their end.

| limit | how it is held |
|---|---|
| memory, size of a file, time of a processor | by the system, for each process (`ulimit` of `sh`) |
| number of processes | by the system, for the user; where this process is root's, each sandbox has a user of its own |
| seconds | the program is killed, and all that it started |
| what is printed | goes to a file, which is no larger than any other |

`bubblewrap` (Linux, `bwrap`), where it is installed and allowed, takes away the rest: files but those of the system and
of the sandbox's own folders, the network, other processes, and whatever is left when a program ends. Without it a
program reads and writes what the user can; root's processes are not counted then, and memory is not limited on macOS.

What always holds: a program gets no variable of this process's environment but those that are named, so no keys; what
it prints cannot stop or fill this process.
"""

import asyncio
import functools
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal, NamedTuple

from longstride.core.component import Component
from longstride.core.errors import ConfigError, EnvFailure, LongstrideWarning
from longstride.core.numbers import Count, Seconds
from longstride.core.plain import plain

ROUNDS = 10
"""Looks at what is left, since what is killed may just have started something."""
DEEPEST = 100
"""Folders in one another."""
MARK = "LONGSTRIDE_SANDBOX"
"""Variable by which what a sandbox started is known."""
MIB = 1 << 20
USERS = range(20_000, 60_000)
"""Numbers of users that sandboxes have, where this process may choose."""
SYSTEM = (
    *("/usr", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ssl"),
    *("/etc/ca-certificates", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group"),
    *("/etc/localtime", "/etc/mime.types"),
)
"""What bubblewrap shows of the machine, to be read."""
PYTHON = tuple(dict.fromkeys((sys.prefix, sys.base_prefix)))
"""Folders of this Python, which are shown too."""
LIMITED = 'ulimit -c 0; ulimit -v "$1"; ulimit -f "$2"; ulimit -t "$3"; ulimit -u "$4" || ulimit -p "$4"; shift 4'
_serials = itertools.count(os.getpid() * 64)

Isolation = Literal["auto", "bwrap", "none"]
"""`bwrap`: under bubblewrap, refused where that cannot be had. `none`: with limits alone. `auto`: under bubblewrap
where it can be had, else with limits alone, which a warning says."""


class Limits(Component):
    """What a program may use."""

    seconds: Seconds = 10.0
    """For one command."""
    memory: Count = 2048
    """MiB of addresses of each process; programs with many threads ask for more of them than they use."""
    processes: Count = 64
    """Processes and threads at once."""
    file_size: Count = 64
    """MiB of each file, what is printed too."""
    folder_size: Count = 256
    """MiB of all files in the sandbox's folders, looked at after each command."""


class Finished(NamedTuple):
    """A command that has ended."""

    status: int
    """0 where it says that all went well; below 0 the signal that killed it."""
    output: str
    """What it printed, errors among it: a plain text, of which the middle is left out where it is long."""
    late: bool = False
    """Whether it was killed because its time was over."""

    @property
    def trouble(self) -> str:
        """How it ended, in words; empty where all went well."""
        if self.late:
            return "it was stopped: its time was over"
        if self.status >= 0:
            return f"it ended with status {self.status}" if self.status else ""
        with suppress(ValueError):
            return f"it was ended by {signal.Signals(-self.status).name}"
        return f"it was ended by signal {-self.status}"


class Sandbox:
    """Where a program runs: its folders, its limits, and what it is kept from.

    Args:
        folders: by the place at which a program sees them under bubblewrap, such as `/app`, the folders that it may
            write to.
        limits: what it may use.
        isolation: see `Isolation`.
        network: whether it reaches the network, loopback too.
        readable: further folders that it may read, where they are.
        path: folders of programs, before those of Python and of the system; places of `folders` too.

    Raises:
        ConfigError: `isolation` is `bwrap`, and that cannot be had.
    """

    def __init__(
        self,
        folders: Mapping[str, Path],
        limits: Limits,
        isolation: Isolation = "auto",
        network: bool = False,
        readable: Iterable[str | Path] = (),
        path: Sequence[str] = (),
    ) -> None:
        self.folders, self.limits, self.network = dict(folders), limits, network
        self.confined = confines(isolation)
        self._readable = [*SYSTEM, *PYTHON, *map(str, readable)]
        programs = [place if self.confined else str(self.where(place) or place) for place in path]
        self._path = ":".join([*programs, f"{sys.base_prefix}/bin", "/usr/local/bin", "/usr/bin", "/bin"])
        serial = next(_serials)
        self._user = USERS[serial % len(USERS)] if self.confined and os.geteuid() == 0 else None
        self._mark = uuid.uuid4().hex

    def own(self) -> None:
        """Gives the folders to the sandbox's user, where it has one: to be called after they were filled from here."""
        if self._user is not None:
            for folder in self.folders.values():
                for path in (folder, *_inside(folder)):
                    os.chown(path, self._user, self._user, follow_symlinks=False)

    def command(self, argv: Sequence[str], start: str, seconds: float) -> list[str]:
        """What is to be run for a command that starts in a place, such as `/app`."""
        most: int | None = self.limits.processes
        if self._user is None:
            most = None if (there := _processes_of(os.geteuid())) is None else there + most
        numbers = (
            self.limits.memory * 1024 if sys.platform == "linux" else "unlimited",
            self.limits.file_size * MIB // 512,
            int(seconds) + 2,
            "unlimited" if most is None else most,
        )
        limited = ["sh", "-c", f'{{ {LIMITED}; }} 2>/dev/null; exec "$@"', "sh", *map(str, numbers), *argv]
        if not self.confined:
            return limited
        places = list(dict.fromkeys(self._readable))
        parents = {str(p) for place in (*places, *self.folders) for p in Path(place).parents} - {"/"}
        options = [option for place in sorted(parents) for option in ("--perms", "0755", "--dir", place)]
        for place in places:
            options += ["--ro-bind-try", place, place]
        for place, folder in self.folders.items():
            options += ["--bind", str(folder), place]
        if not self.network:
            options.append("--unshare-net")
        return [*_bubblewrap(), *options, "--chdir", start, *_as(self._user), *limited]

    async def run(
        self,
        argv: Sequence[str],
        start: str,
        seconds: float | None = None,
        shown: int = 20_000,
        variables: Mapping[str, str] | None = None,
    ) -> Finished:
        """Runs a command, and ends what it left behind.

        Args:
            argv: program and arguments.
            start: where it starts: a place of `folders`, or below.
            seconds: for it; left out, those of the limits.
            shown: characters of its output that are kept, of its beginning and its end.
            variables: further variables of its environment.

        Raises:
            EnvFailure: it cannot be started.
        """
        seconds = self.limits.seconds if seconds is None else seconds
        with tempfile.TemporaryFile() as printed:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self.command(argv, start, seconds),
                    stdin=subprocess.DEVNULL,
                    stdout=printed,
                    stderr=subprocess.STDOUT,
                    cwd=None if self.confined else self.where(start),
                    env=self.environment(start) | dict(variables or {}),
                    start_new_session=True,
                )
            except OSError as e:
                raise EnvFailure(f"{argv[0]} cannot be started: {e.strerror or e}") from e
            late = False
            try:
                async with asyncio.timeout(seconds):
                    await process.wait()
            except TimeoutError:
                late = True
            finally:
                self._kill(process.pid, everything=late or process.returncode is None)
            status = await process.wait()
            return Finished(_signal(status), self._named(_ends(printed, shown)), late)

    def where(self, place: str) -> Path | None:
        """What is behind a place of the sandbox's folders; None for any other."""
        for name, folder in self.folders.items():
            if Path(place).is_relative_to(name):
                return folder / Path(place).relative_to(name)
        return None

    def environment(self, start: str) -> dict[str, str]:
        """The variables that a command sees."""
        home = start if self.confined else str(self.where(start) or start)
        fixed = {"LANG": "C.UTF-8", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1"}
        return {"PATH": self._path, "HOME": home, **fixed, MARK: self._mark}

    def overflow(self) -> str:
        """What is wrong with the size or the depth of the folders, in words; empty where nothing is."""
        most, total = self.limits.folder_size, 0
        for folder in self.folders.values():
            for path in _inside(folder):
                if len(path.relative_to(folder).parts) > DEEPEST:
                    return f"there are more than {DEEPEST} folders in one another"
                with suppress(OSError):
                    total += max(path.lstat().st_size, 512)
                if total > most * MIB:
                    return f"the files have more than {most} MiB"
        return ""

    def end(self) -> None:
        """Ends whatever commands left behind."""
        if not self.confined:  # bubblewrap's processes end with their first one
            kill_marked(f"{MARK}={self._mark}")

    def _kill(self, pid: int, everything: bool) -> None:
        if everything:
            kill_started(pid, f"{MARK}={self._mark}")
        else:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    def _named(self, text: str) -> str:
        """A text with the folders' names as a program would see them under bubblewrap, so that it is the same in every
        episode."""
        for place, folder in self.folders.items() if not self.confined else ():
            text = text.replace(str(folder), place)
        return text


def remove(path: Path) -> None:
    """Removes what a program left: a link, a file, or folders, however deep, to which it took its own rights away.

    Raises:
        OSError: something is left.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    with suppress(OSError, RecursionError):
        shutil.rmtree(path)
        return
    for program in (("chmod", "-R", "u+rwX"), ("rm", "-rf")):
        found = subprocess.run([*program, str(path)], stdin=subprocess.DEVNULL, capture_output=True)
    if found.returncode:
        raise OSError(f"{path} cannot be removed: {plain(found.stderr.decode(errors='replace'))[:200]}")


def _inside(folder: Path) -> Iterator[Path]:
    """What is in a folder, at any depth; no link is followed, and folders that cannot be read are left out."""
    left = [folder]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as found:
            for entry in found:
                yield Path(entry)
                if entry.is_dir(follow_symlinks=False):
                    left.append(Path(entry))


def confines(isolation: Isolation) -> bool:
    """Whether programs run under bubblewrap.

    Raises:
        ConfigError: they have to, and it cannot be had.
    """
    if isolation == "none":
        return False
    if not (trouble := why_not_confined()):
        return True
    if isolation == "bwrap":
        raise ConfigError(f"{trouble}; install it (apt install bubblewrap), or set isolation=none")
    _warn_once(trouble)
    return False


@functools.cache
def why_not_confined() -> str:
    """Why bubblewrap cannot be had here, in words; empty where it can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap (bwrap) is not installed"
    user = USERS[0] if os.geteuid() == 0 else None
    shown = [option for place in (*SYSTEM, *PYTHON) for option in ("--ro-bind-try", place, place)]
    trial = [*_bubblewrap(), "--unshare-net", *shown, *_as(user), "sh", "-c", "exit 0"]
    try:
        found = subprocess.run(trial, capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"bubblewrap does not run here ({e})"
    words = " ".join(plain(found.stderr.decode(errors="replace")).split())[:200]
    return f"bubblewrap is not allowed here ({words})" if found.returncode else ""


@functools.cache
def _warn_once(trouble: str) -> None:
    warnings.warn(
        f"{trouble}, so programs run with limits alone, and read and write what you can; isolation=none says that this "
        "is meant",
        LongstrideWarning,
        stacklevel=4,
    )


@functools.cache
def _bubblewrap() -> tuple[str, ...]:
    """bubblewrap with what every sandbox has."""
    links = [
        option
        for name in ("bin", "sbin", "lib", "lib32", "lib64")
        for option in (
            ("--symlink", os.readlink(f"/{name}"), f"/{name}")
            if os.path.islink(f"/{name}")
            else ("--ro-bind-try", f"/{name}", f"/{name}")
        )
    ]
    spaces = ["--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    # as root no further user is needed, and the program becomes somebody else's, whose processes the system counts
    users = ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if os.geteuid() == 0 else ["--unshare-user"]
    made = ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--size", str(64 * MIB), "--tmpfs", "/tmp"]
    return ("bwrap", "--die-with-parent", "--new-session", *spaces, *users, *made, *links)


def _as(user: int | None) -> list[str]:
    """What makes a program that of another user, for good."""
    if user is None:
        return []
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--bounding-set=-all", "--no-new-privs"]


def _processes_of(user: int) -> int | None:
    """Processes and threads of a user; None where the system does not say."""
    count, known = 0, False
    for folder in Path("/proc").glob("[0-9]*"):
        known = True
        with suppress(OSError):
            if folder.stat().st_uid == user:
                count += len(os.listdir(folder / "task"))
    return count if known else None


def _signal(status: int) -> int:
    """A status as Python has it: a shell and bubblewrap say 128 and more for a signal."""
    return 128 - status if 128 < status < 160 else status


def _ends(file: IO[bytes], most: int) -> str:
    """The beginning and the end of what was printed."""
    size, half = file.seek(0, os.SEEK_END), most // 2
    file.seek(0)
    if size <= most:
        return plain(file.read().decode(errors="replace"))
    head = file.read(half)
    file.seek(size - half)
    tail = file.read()
    between = f"\n({size - 2 * half} bytes left out)\n"
    return plain(head.decode(errors="replace") + between + tail.decode(errors="replace"))


def kill_started(pid: int, mark: str) -> None:
    """Kills a process that leads a session, its group, and on Linux whatever it started elsewhere too (`setsid`).

    Args:
        pid: of the process.
        mark: a variable of its environment, `NAME=value`, that no other process has. What it started has inherited it;
            a process that takes the variable away and leaves the group outlives this.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    kill_marked(mark)


def kill_marked(mark: str) -> None:
    """Kills all processes that have this variable in their environment, `NAME=value`, on Linux."""
    for _ in range(ROUNDS):
        if not (left := _marked(mark.encode())):
            return
        for other in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(other, signal.SIGKILL)


def _marked(mark: bytes) -> list[int]:
    """Live processes with this variable; none where the system does not say."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found

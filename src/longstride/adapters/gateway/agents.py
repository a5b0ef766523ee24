"""Who asks: a program of its own process, or a function of this one; and how it ends.

What always holds: a program gets the address and the key of its own episode and nothing of another one; what it writes
is read and bounded; it and all that it started end with the episode, whatever it does; how it ended is one sentence.
"""

import asyncio
import importlib
import inspect
import os
import shutil
import sys
import tempfile
import threading
import uuid
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from pydantic import AfterValidator, Field, model_validator

from longstride.adapters.processes import kill_started, started
from longstride.core.component import Component
from longstride.core.errors import EnvFailure, short
from longstride.core.foreign import raised
from longstride.core.numbers import Count
from longstride.core.plain import plain
from longstride.core.task import Task

MARK = "LONGSTRIDE_PROGRAM"
"""Variable by which what a program started is known."""
KEPT = 1 << 16
"""Bytes of a program's output that are kept: its end."""
WATCH = 1.0
"""Seconds between two looks at how many processes a program has."""
KILLED = 2.0
"""Seconds between being asked to end and being killed."""
INHERITED = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "SSL_CERT_FILE", "SYSTEMROOT")
"""Variables that a program has of this process: none that may hold a secret."""
_LIMITED = """
import os, resource, sys
memory, file = (int(text) << 20 for text in sys.argv[1:3])
for what, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, file), (resource.RLIMIT_CORE, 0)):
    resource.setrlimit(what, (most, most))
try:
    os.execvp(sys.argv[3], sys.argv[3:])
except OSError as e:
    sys.exit(f"{sys.argv[3]}: {e.strerror}")
"""
"""Takes limits on, and becomes the program."""


@dataclass(frozen=True)
class Job:
    """What an agent is started with."""

    task: Task
    """Without what judges it."""
    seed: int
    address: str
    """Of the server, such as `http://127.0.0.1:4321`."""
    key: str
    folder: Path
    """The episode's own: it is empty, and is gone when the episode is over."""

    @property
    def url(self) -> str:
        """Base address of OpenAI's API."""
        return f"{self.address}/v1"


class Running(Protocol):
    """An agent at work."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    async def ended(self) -> Any:
        """Waits for its end; the last line that it wrote, or what it returned.

        Raises:
            EnvFailure: it did not end as it should; the message says how.
        """
        ...

    async def stop(self) -> None:
        """Ends it, if it has not ended by itself."""
        ...


class AgentProgram(Component):
    """Family: who asks the model."""

    at_once: Count = 8
    """Of them that may be at work at the same time."""

    @abstractmethod
    async def start(self, job: Job) -> Running:
        """Starts it for one episode. Raises: EnvFailure where that fails."""


def _there(command: tuple[str, ...]) -> tuple[str, ...]:
    if shutil.which(command[0]) is None:
        raise ValueError(f"there is no program {command[0]!r} on this machine; expected a command that starts one")
    return command


class Command(AgentProgram):
    """A command, started once for every episode in the folder of this process. It finds `OPENAI_BASE_URL`,
    `OPENAI_API_KEY`, `ANTHROPIC_BASE_URL`, `ANTHROPIC_API_KEY`, the file `LONGSTRIDE_TASK` (a task as JSON),
    `LONGSTRIDE_GOAL`, `LONGSTRIDE_SEED` and the folder `LONGSTRIDE_FOLDER`, which is its own, also for `HOME` and
    `TMPDIR`; of other variables only a few."""

    command: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_there)]
    """Command and arguments, such as `("python", "agent.py")`."""
    variables: dict[str, str] = {}
    """Further variables of its environment."""
    memory_mb: Count = 8192
    """Addresses that each of its processes may use, in MiB."""
    file_mb: Count = 256
    """Size of a file that it may write, in MiB."""
    processes: Count = 64
    """Processes that it may have at once; counted on Linux."""
    output_mb: Count = 16
    """What it may write to its output, in MiB."""
    sandbox: Literal["none", "bwrap"] = "none"
    """`bwrap` (bubblewrap): it sees the machine's files but cannot write any outside of its folder, sees no other
    process, and has a `/tmp` of its own. It still reads whatever this user reads, and has the network."""

    @model_validator(mode="after")
    def _has_its_sandbox(self) -> "Command":
        if self.sandbox == "bwrap" and shutil.which("bwrap") is None:
            raise ValueError("there is no bwrap on this machine: install bubblewrap, or set sandbox=none")
        return self

    async def start(self, job: Job) -> "CommandProcess":
        task = job.folder / "task.json"
        task.write_text(job.task.model_dump_json(), encoding="utf-8")
        inherited = {name: value for name in INHERITED if (value := os.environ.get(name)) is not None}
        own = {
            "OPENAI_BASE_URL": job.url,
            "OPENAI_API_KEY": job.key,
            "ANTHROPIC_BASE_URL": job.address,
            "ANTHROPIC_API_KEY": job.key,
            "LONGSTRIDE_TASK": str(task),
            "LONGSTRIDE_GOAL": job.task.goal[:100_000],
            "LONGSTRIDE_SEED": str(job.seed),
            "LONGSTRIDE_FOLDER": str(job.folder),
            "HOME": str(job.folder),
            "TMPDIR": str(job.folder),
        }
        process = CommandProcess(self, job.folder)
        await process.start(inherited | own | self.variables)
        return process


class CommandProcess:
    """A process of a program."""

    def __init__(self, program: Command, folder: Path) -> None:
        self._program, self._folder, self._mark = program, folder, uuid.uuid4().hex
        self._process: asyncio.subprocess.Process | None = None
        self._written, self._last = 0, bytearray()
        self._complaints: deque[str] = deque(maxlen=5)
        self._trouble = ""
        """Which limit it broke."""
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def name(self) -> str:
        return f"the program {short(' '.join(self._program.command))[1:-1]}"

    async def start(self, variables: dict[str, str]) -> None:
        """Starts it. Raises: EnvFailure."""
        p = self._program
        limited = [sys.executable, "-I", "-S", "-c", _LIMITED, str(p.memory_mb), str(p.file_mb), *p.command]
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(self._sandboxed() if p.sandbox == "bwrap" else []),
                *limited,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                env=variables | {MARK: self._mark},
            )
        except OSError as e:
            raise EnvFailure(f"{self.name} cannot be started: {e.strerror or e}") from e
        assert self._process.stdout is not None and self._process.stderr is not None
        work = self._read(self._process.stdout, self._keep), self._read(self._process.stderr, self._complain)
        self._tasks = [asyncio.create_task(each) for each in (*work, self._watch())]

    async def ended(self) -> str:
        assert self._process is not None
        try:
            status = await self._process.wait()
            # a child that it left behind may hold its output open
            await asyncio.wait(self._tasks[:2], timeout=KILLED)
        finally:
            self._kill()
        if self._trouble:
            raise EnvFailure(f"{self.name} {self._trouble}")
        if status:
            how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
            why = f"; it last wrote: {' / '.join(self._complaints)}" if self._complaints else ""
            raise EnvFailure(f"{self.name} {how}{why}")
        lines = bytes(self._last).decode(errors="replace").strip().splitlines()
        return plain(lines[-1].strip()) if lines else ""

    async def stop(self) -> None:
        process = self._process
        if process is None:
            return
        try:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.terminate()
                with suppress(TimeoutError):
                    async with asyncio.timeout(KILLED):
                        await process.wait()
        finally:
            self._kill()
        await process.wait()

    def _kill(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._process is not None:
            kill_started(self._process.pid, f"{MARK}={self._mark}")

    async def _read(self, stream: asyncio.StreamReader, keep: Callable[[bytes], None]) -> None:
        while piece := await stream.read(1 << 16):
            self._written += len(piece)
            if self._written > self._program.output_mb << 20:
                self._break(f"wrote more than {self._program.output_mb} MiB to its output")
                return
            keep(piece)

    def _keep(self, piece: bytes) -> None:
        self._last += piece
        del self._last[:-KEPT]

    def _complain(self, piece: bytes) -> None:
        lines = piece.decode(errors="replace").splitlines()
        self._complaints.extend(plain(line[:200]) for line in lines if line.strip())

    async def _watch(self) -> None:
        """Looks after its processes."""
        while True:
            await asyncio.sleep(WATCH)
            if (n := len(started(f"{MARK}={self._mark}"))) > self._program.processes:
                self._break(f"had {n} processes, and may have {self._program.processes}")
                return

    def _break(self, how: str) -> None:
        self._trouble = self._trouble or how
        assert self._process is not None
        kill_started(self._process.pid, f"{MARK}={self._mark}")

    def _sandboxed(self) -> list[str]:
        folder = str(self._folder)
        own = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", folder, folder]
        apart = ["--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"]
        return ["bwrap", "--ro-bind", "/", "/", *own, *apart, "--chdir", os.getcwd(), "--"]


def _importable(name: str) -> str:
    if not all(part.isidentifier() for part in name.replace(":", ".").split(".")) or name.count(":") != 1:
        raise ValueError(f"expected module:function, got {name!r}")
    return name


class Function(AgentProgram):
    """A Python function of this process, in a thread of its own: `play(job)`, a coroutine or not, with `job.task`,
    `job.url` and `job.key`. What it returns is what a program's last line says. It is trusted: no limit holds it, and
    where it hangs its thread stays."""

    function: Annotated[str, AfterValidator(_importable)]
    """Where it is: `module:function`."""

    at_once: Count = 64

    async def start(self, job: Job) -> "_Thread":
        module, _, name = self.function.partition(":")
        try:
            play = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as e:
            raise EnvFailure(f"the function {self.function} is not found: {e}") from e
        return _Thread(self.function, play, job)


class _Thread:
    """A function at work."""

    def __init__(self, name: str, play: Callable[[Job], Any], job: Job) -> None:
        self.name = f"the function {name}"
        loop = asyncio.get_running_loop()
        self._done: asyncio.Future[tuple[Any, str]] = loop.create_future()

        def settle(returned: Any, trouble: str) -> None:
            if not self._done.done():
                self._done.set_result((returned, trouble))

        def run() -> None:
            returned, trouble = None, ""
            try:
                returned = play(job)
                if inspect.iscoroutine(returned):
                    returned = asyncio.run(_all_of(returned))
            except BaseException as e:  # whatever somebody else's code raises
                trouble = f"raised {raised(e)}"
            with suppress(RuntimeError):  # the pool has gone
                loop.call_soon_threadsafe(settle, returned, trouble)

        threading.Thread(target=run, name=name, daemon=True).start()

    async def ended(self) -> Any:
        returned, trouble = await asyncio.shield(self._done)
        if trouble:
            raise EnvFailure(f"{self.name} {trouble}")
        return returned

    async def stop(self) -> None:
        """A thread cannot be ended; its requests are refused."""


async def _all_of(work: Coroutine[Any, Any, Any]) -> Any:
    return await work


def new_folder() -> Path:
    """An empty folder for one episode."""
    return Path(tempfile.mkdtemp(prefix="longstride-"))

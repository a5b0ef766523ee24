"""Who asks: a program of its own process, or a function of this one; and how it ends.

What always holds: a program gets the address and the key of its own episode and nothing of another one; it and all that
it started end with the episode, whatever it does; how it ended is one sentence. Limits and isolation of a process are
those of `core.processes`.
"""

import asyncio
import inspect
import os
import shutil
import sys
import tempfile
import threading
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, Field

from longstride.adapters.gateway.server import Server, server_at
from longstride.core.component import Component
from longstride.core.errors import ConfigError, EnvFailure, short
from longstride.core.foreign import raised
from longstride.core.modules import import_module
from longstride.core.numbers import Count, Seconds
from longstride.core.processes import Isolation, Limits, Sandbox, remove
from longstride.core.task import Task

PLACE = "/episode"
"""Where a program under bubblewrap finds its folder."""
TASK = "task.json"
"""The file of the task in it."""
LOOK = 1.0
"""Seconds between two looks at whether a stranger is still there."""
MAX_GOAL = 100_000
"""Bytes of the goal in a variable, which the system bounds; the file has all of it."""


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


def _absolute(command: tuple[str, ...]) -> tuple[str, ...]:
    program = shutil.which(command[0])
    if program is None:
        raise ValueError(f"there is no program {command[0]!r} on this machine; expected a command that starts one")
    return str(Path(program).absolute()), *(
        str(Path(word).absolute()) if _is_path(word) else word for word in command[1:]
    )


def _is_path(word: str) -> bool:
    """Whether a word names what is there by a path or with a suffix: a bare word, such as a module's name or `test`, is
    none, whatever stands beside it."""
    path = Path(word)
    return len(word) < 256 and (os.sep in word or path.suffix != "") and path.exists()


class Command(AgentProgram):
    """A command, started once for every episode in an empty folder of its own. Its variables are `OPENAI_BASE_URL`,
    `OPENAI_API_KEY`, `ANTHROPIC_BASE_URL`, `ANTHROPIC_API_KEY`, `LONGSTRIDE_TASK` (a file: the task as JSON),
    `LONGSTRIDE_GOAL`, `LONGSTRIDE_SEED`, and few others."""

    command: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_absolute)]
    """Program and arguments, such as `("python", "agent.py")`; those with a suffix or a slash that are files or folders
    here (`./agent`) are given by their full paths, and may be read, with what is beside them."""
    variables: dict[str, str] = {}
    """Further variables of its environment."""
    readable: tuple[str, ...] = ()
    """Further folders that it may read, where bubblewrap hides others."""
    limits: Limits = Limits(seconds=600.0, memory=8192)
    """What it may use; `seconds` for the whole episode."""
    isolation: Isolation = "auto"
    """Whether bubblewrap takes files of others and other processes away from it; the network it needs, and keeps."""

    async def start(self, job: Job) -> "_Process":
        files = [Path(word) for word in self.command[1:] if Path(word).is_absolute() and _is_path(word)]
        beside = [shown for path in files for shown in _open_to_others(path if path.is_dir() else path.parent)]
        path = dict.fromkeys((str(Path(sys.executable).parent), f"{sys.base_prefix}/bin"))
        sandbox = Sandbox({PLACE: job.folder}, self.limits, self.isolation, True, [*beside, *self.readable], [*path])
        _put(job.task.model_dump_json(), job.folder)
        sandbox.own()
        place = PLACE if sandbox.confined else str(job.folder)
        variables = {
            "OPENAI_BASE_URL": job.url,
            "OPENAI_API_KEY": job.key,
            "ANTHROPIC_BASE_URL": job.address,
            "ANTHROPIC_API_KEY": job.key,
            "LONGSTRIDE_TASK": f"{place}/{TASK}",
            "LONGSTRIDE_GOAL": job.task.goal.encode()[:MAX_GOAL].decode(errors="ignore"),
            "LONGSTRIDE_SEED": str(job.seed),
        }
        return _Process(self, sandbox, variables | self.variables)


def _put(task: str, folder: Path) -> None:
    """Writes the file of the task, in a folder where a program may have been at work: in place of whatever it left
    there, such as a link to a file of ours. Raises: EnvFailure where that fails."""
    try:
        folder.chmod(0o700)  # the program's own, to which it may have taken its rights away
        remove(folder / TASK)
        (folder / TASK).write_text(task, encoding="utf-8")
    except OSError as e:
        raise EnvFailure(f"{TASK} cannot be written into the episode's folder: {e.strerror or e}") from e


def _open_to_others(folder: Path) -> list[Path]:
    """A folder; where it is closed to other users, which a program of root's is, what is in it; never the whole
    machine."""
    if folder == Path(folder.anchor):
        return []
    return [folder] if folder.stat().st_mode & 0o005 == 0o005 else list(folder.iterdir())


class _Process:
    """A command at work."""

    def __init__(self, command: Command, sandbox: Sandbox, variables: dict[str, str]) -> None:
        self.name = f"the program {short(' '.join(map(_short, command.command)))[1:-1]}"
        self._sandbox = sandbox
        self._work = asyncio.create_task(sandbox.run(command.command, PLACE, variables=variables))

    async def ended(self) -> str:
        finished = await asyncio.shield(self._work)
        lines = [line.strip() for line in finished.output.splitlines() if line.strip()]
        if trouble := finished.trouble or self._sandbox.overflow():
            why = f"; it last wrote: {' / '.join(line[:200] for line in lines[-3:])}" if lines else ""
            raise EnvFailure(f"{self.name}: {trouble}{why}")
        return lines[-1] if lines else ""

    async def stop(self) -> None:
        self._work.cancel()
        with suppress(asyncio.CancelledError, EnvFailure):
            await self._work
        await asyncio.to_thread(self._sandbox.end)


def _short(word: str) -> str:
    """A word of a command: of a path the name."""
    return Path(word).name if _is_path(word) else word


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
        play = getattr(import_module(module), name, None)
        if not callable(play):
            raise ConfigError(f"agent.function is {self.function}, and {module} has no function {name!r}")
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
                    returned = asyncio.run(returned)
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


def new_folder() -> Path:
    """An empty folder for one episode."""
    return Path(tempfile.mkdtemp(prefix="longstride-"))


class Stranger(AgentProgram):
    """A program that nobody here starts: whoever comes with a new key plays an episode under it. It ends by `POST
    /v1/episode/end` with a result as JSON (`{"reward": 1}`), or when nothing was asked for a while."""

    at_once: Count = 64
    quiet: Seconds = 300.0
    """Seconds without a request after which it has ended, with a reward of 0."""

    async def start(self, job: Job) -> "_Visit":
        return _Visit(server_at(job.address), job.key, self.quiet)


class _Visit:
    """A stranger at work."""

    name = "the program"

    def __init__(self, server: Server, key: str, quiet: float) -> None:
        self._line, self._quiet = server.await_stranger(key), quiet

    async def ended(self) -> Any:
        unasked = self._line.key
        while True:
            passed = 0.0 if self._line.key == unasked else self._line.silence
            if passed >= self._quiet:
                return {"reward": 0.0}
            done, _ = await asyncio.wait({self._line.reported}, timeout=min(self._quiet - passed, LOOK))
            if done:
                return {"reward": 0.0} | self._line.reported.result()

    async def stop(self) -> None:
        """It is somebody else's; its requests are refused."""

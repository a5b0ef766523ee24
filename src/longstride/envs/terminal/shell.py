"""An environment in which commands are run: `sh COMMAND`, up to `answer TEXT` or `done`.

What always holds: an episode has folders of its own, which end with it; a command is a shell of its own, so `cd` and
variables last as long as it does, and files last; it runs in a sandbox (`core.processes`), and what it does there is
the policy's own doing: a command that fails, runs out of time or is killed costs a turn, and files that grow beyond
their limit end the episode. What is shown is what was printed, whose middle is left out where it is long. The same
commands print the same as far as programs do: clocks and numbers of processes differ.
"""

import asyncio
import tempfile
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from longstride.core.errors import EnvFailure, TaskError, unknown
from longstride.core.plain import plain
from longstride.core.processes import Finished, Isolation, Limits, Sandbox, remove
from longstride.core.task import Task
from longstride.envs.base import Observation, Step
from longstride.envs.text import said
from longstride.envs.tools import Manual, Tool, arguments

SH = Tool("sh", arguments(command="string"), "runs a command of the shell", "sh {command}")
ANSWER = Tool("answer", arguments(text="string"), "ends the task with an answer in words", "answer {text}")
DONE = Tool("done", arguments(), "ends the task: the files are as they should be", "done")
SILENT = "nothing was printed"
"""What is shown of a command that prints nothing."""


class Shell:
    """Base of environments of one task: `lay_out` makes its files.

    Args:
        limits: what a command may use.
        isolation: see `core.processes`.
        shown: characters of a command's output that are shown.
        end: what ends the task: `ANSWER` or `DONE`.
        network: whether commands reach the network.
        path: places and folders of programs, before those of the system.
    """

    about = "You act in a folder of a Linux machine. Each command is a shell of its own."
    """What the manual says of it."""
    program = "sh"
    """The shell."""

    def __init__(
        self,
        limits: Limits,
        isolation: Isolation = "auto",
        shown: int = 2000,
        end: Tool = DONE,
        network: bool = False,
        path: tuple[str, ...] = (),
    ) -> None:
        self._limits, self._shown, self._end = limits, shown, end
        self._isolation: Isolation = isolation
        self._network, self._path = network, path
        self._root: tempfile.TemporaryDirectory[str] | None = None
        self._sandbox: Sandbox | None = None
        self.start = ""
        """Where commands start; the first folder, where `lay_out` does not say it."""
        self.variables: dict[str, str] = {}
        """What commands see in their environment besides what every sandbox has."""

    @abstractmethod
    def lay_out(self, task: Task, root: Path) -> tuple[Mapping[str, Path], str]:
        """Makes a task's files in a new folder; in a thread.

        Returns:
            the folders, by the places at which they are seen, and what is seen first.
        """

    @property
    def sandbox(self) -> Sandbox:
        """Where commands run, between `reset` and `close`."""
        if self._sandbox is None:
            raise RuntimeError("a shell is used between reset and close")
        return self._sandbox

    async def reset(self, task: Task, seed: int) -> Observation:
        """Makes the files. Raises: EnvFailure where they cannot be made."""
        try:
            # a policy may take its own rights to a folder away
            self._root = tempfile.TemporaryDirectory(prefix="longstride-", ignore_cleanup_errors=True)
            folders, seen = await asyncio.to_thread(self.lay_out, task, Path(self._root.name))
            self._sandbox = Sandbox(folders, self._limits, self._isolation, self._network, path=self._path)
            self.start = self.start or next(iter(folders))
            self._sandbox.own()
        except OSError as e:
            raise EnvFailure(f"the files of task {task.id!r} cannot be made: {e.strerror or e}") from e
        except TaskError as e:
            raise EnvFailure(str(e)) from e
        return Observation(seen, manual=Manual((SH, self._end), self.about, needed=False))

    async def step(self, text: str) -> Step:
        """Does what the policy's text says. Raises: EnvFailure where no command can be started."""
        verb, _, rest = said(plain(text)).replace("\n", " \n", 1).partition(" ")
        rest = rest.strip()
        if verb == "sh" and rest:
            return await self._command(rest)
        if verb == self._end.name and (rest or self._end is DONE):
            answer = rest if self._end is ANSWER else None
            step = await self.ended()
            step.action, step.answer, step.terminated = f"{verb} {rest}".strip(), answer, True
            return step
        if not verb:
            return _mistake("no action was given")
        known = (SH.name, self._end.name)
        return _mistake(f"{verb} takes words" if verb in known else unknown("action", verb, known))

    async def ended(self) -> Step:
        """The last step, when the policy has ended the task."""
        return Step(Observation(""))

    async def run(self, command: str, seconds: float | None = None) -> Finished:
        """Runs a command of the shell where the policy's commands start."""
        argv = (self.program, "-c", command)
        return await self.sandbox.run(argv, self.start, seconds, self._shown, self.variables)

    async def final_state(self) -> dict[str, Any]:
        """Nothing but the answer counts."""
        return {}

    async def close(self) -> None:
        """Ends what runs, and removes the files."""
        if self._sandbox is not None:
            self._sandbox.end()
            self._sandbox = None
        if self._root is not None:
            root, self._root = self._root, None
            with suppress(OSError):
                await asyncio.to_thread(remove, Path(root.name))
            with suppress(RecursionError):
                root.cleanup()

    async def _command(self, command: str) -> Step:
        found = await self.run(command)
        action = f"sh {command}"
        if overflow := await asyncio.to_thread(self.sandbox.overflow):
            return Step(Observation(f"error: {overflow}"), terminated=True, action=action, error=overflow)
        printed = found.output.strip("\n")
        if not (trouble := found.trouble):
            return Step(Observation(printed or SILENT), action=action)
        return Step(Observation(f"{printed}\nerror: {trouble}".lstrip()), action=action, error=trouble)


def _mistake(error: str) -> Step:
    return Step(Observation(f"error: {error}"), error=error)

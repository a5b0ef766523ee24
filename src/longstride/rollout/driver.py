"""The driver: runs the coroutines of many environments together, under a deadline.

What always holds: `run` comes back within its deadline and `GRACE` as long as no coroutine blocks the thread; what
has not finished by then is cancelled, and is named by the places where it waits. Whatever a coroutine raises is
raised here, after the others are done. The loop is private: what belongs to a loop (connections, locks) lives as long
as the driver.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

GRACE = 1.0
"""Seconds that a cancelled coroutine has for its clean-up before it is abandoned."""


class Driver:
    """A private event loop and a deadline in seconds. A context manager."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.cancel()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def run(self, coroutines: Sequence[Coroutine[Any, Any, None]]) -> list[str]:
        """Runs all to their end; for each where it was stuck at the deadline, or `""`."""
        return self._loop.run_until_complete(self._run(coroutines)) if coroutines else []

    def cancel(self) -> None:
        """Cancels what an interrupted `run` left behind."""
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left, timeout=GRACE))

    async def _run(self, coroutines: Sequence[Coroutine[Any, Any, None]]) -> list[str]:
        tasks = [self._loop.create_task(c) for c in coroutines]
        _, late = await asyncio.wait(tasks, timeout=self._deadline)
        stuck = {task: _where(task) for task in late}
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=GRACE)
        errors = [e for t in tasks if t.done() and not t.cancelled() and (e := t.exception()) is not None]
        if errors:
            raise errors[0]
        return [stuck.get(t, "cancelled from inside" if t.cancelled() else "") for t in tasks]


def _where(task: "asyncio.Task[None]") -> str:
    """The places where a suspended task waits, outermost first: `env.py:12 step > tasks.py:639 sleep`."""
    places, waiting = [], task.get_coro()
    while waiting is not None:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is not None:
            places.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}")
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
    return " > ".join(places)

"""A deadline for one coroutine, and where it waits when the deadline comes.

What always holds: `within` comes back within its deadline and `GRACE` as long as the coroutine does not block the
thread; one that has not finished by then is cancelled, and named by the places where it waits. Whatever it raises is
raised.
"""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from types import FrameType
from typing import Any

GRACE = 1.0
"""Seconds that a cancelled coroutine has for its clean-up before it is abandoned."""


async def within(seconds: float, coroutine: Coroutine[Any, Any, None]) -> str:
    """Runs it to its end; `""`, or where it was stuck at the deadline."""
    around = asyncio.current_task()
    task = asyncio.create_task(coroutine, name=around.get_name() if around else None)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _abandon(task)
        raise
    if task.done():
        if task.cancelled():
            return "cancelled from inside"
        task.result()
        return ""
    places = where(task)
    await _abandon(task)
    return places


async def _abandon(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE)
    if task.done() and not task.cancelled():
        task.exception()  # looked at, so that asyncio does not report it


def where(task: "asyncio.Task[Any]") -> str:
    """The places where a suspended task waits, outermost first: `env.py:12 step > tasks.py:639 sleep`."""
    places, waiting = [], task.get_coro()
    while waiting is not None:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is not None:
            places.append(_place(frame))
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
    return " > ".join(places)


def where_running(frame: FrameType | None, depth: int = 6) -> str:
    """The innermost places of a thread that runs, outermost first."""
    places = []
    while frame is not None and len(places) < depth:
        places.append(_place(frame))
        frame = frame.f_back
    return " > ".join(reversed(places))


def _place(frame: FrameType) -> str:
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"

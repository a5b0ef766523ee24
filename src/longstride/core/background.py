"""An event loop in a thread of its own, for clients whose requests go on while their owner does something else."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """Runs coroutines until it is closed.

    Args:
        name: of the thread.
        at_end: is awaited last, when everything else was dropped.
    """

    def __init__(self, name: str, at_end: Callable[[], Awaitable[object]]) -> None:
        self._loop, self._at_end = asyncio.new_event_loop(), at_end
        self.thread = Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Has the thread do some work."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Has the thread drop everything and end, and does not wait for that. Does nothing the second time."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._at_end()

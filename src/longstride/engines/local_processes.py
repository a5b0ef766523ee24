"""The local engine in several processes of one thread each: a small model gains little from a second thread. On two
cores the longest path of two processes took 0.73 to 0.79 of the CPU time of one process of one thread (128 episodes of
`tti`, 0.46M parameters).

What always holds: which process serves a request depends on its `ordinal` and the number of processes alone, and a
process begins with all requests that were submitted between two polls; so where nothing is submitted to a process
before all that it had is answered (the pool's lockstep), the same requests give the same bits. The processes share one
copy of the weights, which changes in `update` alone, while none of them samples. They end with the process that made
them, however that ends.
"""

import copy
import multiprocessing
import os
import signal
import sys
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
from torch import nn

from longstride.core.errors import RunError
from longstride.engines.base import Engine, Outcome, Request

SMALL = 100_000_000
"""Parameters up to which a model is worth several processes: their one copy of it is in shared memory, of which
containers often have little."""
MOMENT = 0.005
"""Seconds."""
_METHOD = "fork" if sys.platform == "linux" else "spawn"
"""How processes start: a fork is there at once, and safe on Linux while they use one thread of torch."""
Command = tuple[str, Any]
"""`submit` (ticket and request), `cancel` (ticket), `release` (session); and `hold` (sample nothing until the next
`update`) and `update` (version), which are acknowledged."""


class ProcessEnded(RunError):
    """A process that samples has ended; the engine can be used no more."""


class ProcessEngine(Engine):
    """Engines in processes of their own, as one.

    Args:
        model: on the CPU; it is copied.
        make: makes a process's engine from the shared copy. It is called in this process too, so that a model that
            cannot be run is refused here.
        processes: how many.
        version: of the model's weights.

    Raises:
        ProcessEnded: by `poll` and `update`.
    """

    def __init__(self, model: nn.Module, make: Callable[[nn.Module], Engine], processes: int, version: int) -> None:
        super().__init__(version)
        self.parts = processes
        make(model)
        self._shared = copy.deepcopy(model).share_memory()
        self._tickets = count()
        self._open: dict[int, int] = {}
        """The process of each ticket that is not answered."""
        self._commands: list[list[Command]] = [[] for _ in range(processes)]
        """Commands for each process, sent with the next poll."""
        self._process_of: dict[int, int] = {}
        """The process of each session."""
        self._spent = [(0, 0)] * processes
        context: Any = multiprocessing.get_context(_METHOD)
        pipes = [context.Pipe() for _ in range(processes)]
        self._pipes: list[Connection] = [ours for ours, _ in pipes]
        workers = []
        for k, (_, theirs) in enumerate(pipes):
            # a forked process has all ends: one that kept ours would never see this process end
            others = [end for n, pair in enumerate(pipes) for end in (pair if n != k else pair[:1])]
            others = others if _METHOD == "fork" else []
            workers.append(context.Process(target=_serve, args=(theirs, others, self._shared, make), daemon=True))
            workers[-1].start()
        for _, theirs in pipes:
            theirs.close()
        self._end = weakref.finalize(self, _end, self._pipes, workers)

    def submit(self, request: Request) -> int:
        self.check(request)
        ticket, k = next(self._tickets), request.ordinal % len(self._pipes)
        if request.session is not None:
            self._process_of[request.session] = k
        self._open[ticket] = k
        self._commands[k].append(("submit", (ticket, request)))
        return ticket

    def poll(self) -> list[tuple[int, Outcome]]:
        """Waits until a request is answered, where one is open; only for a moment where a process has nothing to do."""
        self._send()
        while not self._done and self._open:
            idle = len(set(self._open.values())) < self.parts
            self._receive(MOMENT if idle else None)
            if idle:
                break
        return self._take_done()

    def cancel(self, ticket: int) -> None:
        self._done.pop(ticket, None)
        if ticket in self._open:
            self._commands[self._open.pop(ticket)].append(("cancel", ticket))

    def release(self, session: int) -> None:
        if session in self._process_of:
            self._commands[self._process_of.pop(session)].append(("release", session))

    def forget(self) -> None:
        for commands in self._commands:
            commands.append(("forget", None))

    def update(self, weights: Any, version: int) -> None:
        self._send_all(("hold", None))
        with torch.no_grad():
            for mine, new in zip(self._shared.parameters(), weights.parameters(), strict=True):
                mine.copy_(new)
            for mine, new in zip(self._shared.buffers(), weights.buffers(), strict=True):
                mine.copy_(new)
        self._send_all(("update", version))
        self.version = version

    def close(self) -> None:
        self._end()

    def _send(self) -> None:
        for pipe, commands in zip(self._pipes, self._commands, strict=True):
            if commands:
                try:
                    pipe.send(commands)
                except OSError as e:
                    raise _gone() from e
                commands.clear()

    def _send_all(self, command: Command) -> None:
        """Sends a command to all processes, and waits until all have done it."""
        for commands in self._commands:
            commands.append(command)
        self._send()
        waiting = set(range(len(self._pipes)))
        while waiting:
            waiting -= self._receive()

    def _receive(self, seconds: float | None = None) -> set[int]:
        """Takes what has come, once something has, or the seconds are over; returns which processes have done a command
        of `_send_all`."""
        acknowledged, ready = set(), wait(self._pipes, seconds)
        for k, pipe in enumerate(self._pipes):
            if pipe not in ready:
                continue
            try:
                answered, done, self._spent[k] = pipe.recv()
            except (EOFError, OSError) as e:
                raise _gone() from e
            for ticket, outcome in answered:
                if self._open.pop(ticket, None) is not None:  # else it was cancelled meanwhile
                    self._done[ticket] = outcome
            if done:
                acknowledged.add(k)
        self.tokens_in, self.tokens_out = (sum(spent) for spent in zip(*self._spent, strict=True))
        return acknowledged


def worth_several(model: nn.Module) -> bool:
    """Whether a model is small, and on the CPU."""
    parameters = list(model.parameters())
    return all(p.device.type == "cpu" for p in parameters) and sum(p.numel() for p in parameters) <= SMALL


def cores() -> int:
    """The cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # where the system knows it
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _gone() -> ProcessEnded:
    return ProcessEnded(
        "a process that samples tokens has ended (see its error above, or the system's log where memory ran out); the "
        "last checkpoint is whole: resume the run, with engine.processes=1 if it happens again"
    )


def _serve(
    pipe: Connection, others: Sequence[Connection], model: nn.Module, make: Callable[[nn.Module], Engine]
) -> None:
    """A process: samples what it is asked for, and looks for commands between two passes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that made it, which then ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for end in others:
        end.close()
    torch.set_num_threads(1)
    server = _Server(make(model), model)
    with suppress(EOFError, OSError):  # the other side has ended
        while True:
            if server.idle or pipe.poll():
                for name, value in pipe.recv():
                    if server.execute(name, value):
                        pipe.send(([], True, server.spent))
            elif answered := server.advance():
                pipe.send((answered, False, server.spent))


class _Server:
    """What a process does."""

    def __init__(self, engine: Engine, model: nn.Module) -> None:
        self._engine, self._model, self._held = engine, model, False
        self._theirs: dict[int, int] = {}
        """By ticket of the engine, that of the other side."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do before the next command."""
        return self._held or not self._theirs

    @property
    def spent(self) -> tuple[int, int]:
        return self._engine.tokens_in, self._engine.tokens_out

    def execute(self, name: str, value: Any) -> bool:
        """Does a command; returns whether the other side waits for that."""
        match name:
            case "submit":
                ticket, request = value
                self._theirs[self._engine.submit(request)] = ticket
            case "cancel":
                for ours in [ours for ours, theirs in self._theirs.items() if theirs == value]:
                    self._engine.cancel(ours)
                    del self._theirs[ours]
            case "release":
                self._engine.release(value)
            case "forget":
                self._engine.forget()
            case "hold":
                self._held = True
            case "update":
                self._engine.update(self._model, value)
                self._held = False
        return name in ("hold", "update")

    def advance(self) -> list[tuple[int, Outcome]]:
        """One pass; returns what it completed."""
        return [(self._theirs.pop(ticket), outcome) for ticket, outcome in self._engine.poll()]


def _end(pipes: Sequence[Connection], workers: Sequence[Any]) -> None:
    for pipe in pipes:
        pipe.close()
    for worker in workers:
        worker.terminate()
        worker.join()

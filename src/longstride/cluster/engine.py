"""Remote engines, by way of Ray: replicas of an engine (local, or vLLM), each an actor with weights of its own that
serves the requests of many clients together, and the engine that stands for them in each client.

What always holds: the requests of a session go to one replica; a replica that dies, or whose engine fails or loses one
of the processes in which it samples, is started again by Ray with the newest weights, and Ray asks it anew for what it
had not answered, so that nothing is lost: a sample depends on its request alone. Weights change between two passes of a
replica, so every token has the version that it came from. All that goes through Ray is pickled: machines of one cluster
trust each other.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from longstride.core.errors import EngineFailure, RunError
from longstride.core.seeds import derive
from longstride.engines.base import Engine, Outcome, Refused, Request, Sampling
from longstride.engines.config import EngineConfig
from longstride.engines.local_processes import ProcessEnded

if TYPE_CHECKING:
    from torch import Tensor

PATIENCE = 0.005
"""Seconds that a client waits for answers before it looks for new questions."""


class Spent(NamedTuple):
    """What a replica has done so far, for all clients."""

    replica: str
    """Its name, another one each time it is started."""
    version: int
    """Of its weights now."""
    tokens_in: int
    """Prompt tokens that it encoded."""
    tokens_out: int
    """Tokens that it sampled."""


class WeightStore:
    """Keeps what a replica begins with: a Ray actor. References come in lists, for Ray to pass them on as they are.

    Args:
        parts: reference to name, model and tokenizer of the policy.
        version: of the model's weights.
    """

    def __init__(self, parts: list[Any], version: int) -> None:
        self._parts, self._version = parts, version
        self._weights: list[Any] = []

    def put(self, weights: list[Any], version: int) -> None:
        """Takes a reference to newer weights."""
        self._weights, self._version = weights, version

    def newest(self) -> tuple[list[Any], list[Any], int]:
        """The policy's parts, the weights that it has by now (none: its own), and their version."""
        return self._parts, self._weights, self._version


class Replica:
    """Serves an engine to many clients. A Ray actor; the engine is used by one thread of it.

    Args:
        config: of the engine.
        samplings: all that requests will ask for.
        store: Ray's name for the `WeightStore` with its policy. (No handle: Ray warns of starting actors again that
            were given references.)
    """

    def __init__(self, config: EngineConfig, samplings: Sequence[Sampling], store: str) -> None:
        import ray

        from longstride.models.load import make_policy

        parts, weights, version = ray.get(ray.get_actor(store).newest.remote())
        policy = make_policy(*ray.get(parts[0]))
        self._model = policy.model.to("cuda" if ray.get_gpu_ids() else "cpu")
        for newer in ray.get(weights):
            self._model.load_state_dict(newer)
        self._engine = config.make(policy, version, samplings)
        self._name = ray.get_runtime_context().get_worker_id()
        self._going: dict[int, Future[Outcome]] = {}
        """Who waits, by ticket."""
        self._todo: SimpleQueue[Callable[[], None]] = SimpleQueue()
        """What is done in the engine's thread before its next pass."""
        Thread(target=self._run, name="engine", daemon=True).start()

    async def complete(self, request: Request) -> tuple[Outcome, Spent]:
        """Continues a prompt. A call that is cancelled is forgotten."""
        future: Future[Outcome] = Future()
        self._todo.put(lambda: self._start(request, future))
        return await asyncio.wrap_future(future), self._spent()

    async def release(self, session: int) -> None:
        """As `Engine.release`."""
        self._todo.put(lambda: self._engine.release(session))

    async def forget(self) -> None:
        """As `Engine.forget`."""
        self._todo.put(self._engine.forget)

    async def update(self, weights: "Mapping[str, Tensor]", version: int) -> Spent:
        """Takes new weights, by name, between two passes."""
        future: Future[None] = Future()

        def take() -> None:
            try:
                future.set_result(self._take(weights, version))
            except (ProcessEnded, EngineFailure):
                raise
            except Exception as e:
                future.set_exception(e)

        self._todo.put(take)
        await asyncio.wrap_future(future)
        return self._spent()

    def _spent(self) -> Spent:
        engine = self._engine
        return Spent(self._name, engine.version, engine.tokens_in, engine.tokens_out)

    # what follows runs in the engine's thread

    def _run(self) -> None:
        try:
            self._serve()
        except (ProcessEnded, EngineFailure):
            os._exit(1)  # a replica that lost what it samples with is dead: Ray starts it again

    def _serve(self) -> None:
        while True:
            while not self._going or not self._todo.empty():
                self._todo.get()()
            try:
                done = self._engine.poll()
            except (ProcessEnded, EngineFailure):
                raise
            except Exception as e:  # every client gets it, and ends with it
                going, self._going = self._going, {}
                for future in going.values():
                    if future.set_running_or_notify_cancel():
                        future.set_exception(e)
                continue
            for _, outcome in done:  # one that is refused would be by the next replica too
                if isinstance(outcome, EngineFailure) and not isinstance(outcome, Refused):
                    raise outcome
            for ticket, outcome in done:
                future = self._going.pop(ticket)
                if future.set_running_or_notify_cancel():
                    future.set_result(outcome)

    def _start(self, request: Request, future: "Future[Outcome]") -> None:
        ticket = self._engine.submit(request)
        self._going[ticket] = future

        def ended(future: "Future[Outcome]") -> None:
            if future.cancelled():
                self._todo.put(lambda: self._forget(ticket))

        future.add_done_callback(ended)

    def _forget(self, ticket: int) -> None:
        self._engine.cancel(ticket)
        self._going.pop(ticket, None)

    def _take(self, weights: "Mapping[str, Tensor]", version: int) -> None:
        self._model.load_state_dict(weights)
        self._engine.update(self._model, version)


class RemoteEngine(Engine):
    """Stands for all replicas. `version`, `tokens_in` and `tokens_out` are theirs, whoever their clients are, as of
    their last answers to this one.

    Args:
        replicas: handles of `Replica` actors, at least one.
        store: Ray's name for their `WeightStore`.
        version: of their weights.
    """

    def __init__(self, replicas: Sequence[Any], store: str, version: int) -> None:
        import ray

        super().__init__(version)
        self._replicas, self._store = list(replicas), store
        self._client = ray.get_runtime_context().get_worker_id()
        self._tickets = count()
        self._asked: dict[Any, int] = {}
        """Ticket of each call that is under way."""
        self._homes: dict[int, int] = {}
        """Number of the replica that has a session."""
        self._spent: dict[str, Spent] = {}
        """Of each replica by its name, those that have died too."""

    def submit(self, request: Request) -> int:
        self.check(request)
        ticket, home, session = next(self._tickets), 0, request.session
        if session is None:
            home = ticket % len(self._replicas)
        else:
            if session not in self._homes:
                homes = list(self._homes.values())
                self._homes[session] = min(range(len(self._replicas)), key=homes.count)
            home = self._homes[session]
            request = replace(request, session=self._named(session))
        self._asked[self._replicas[home].complete.remote(request)] = ticket
        return ticket

    def poll(self) -> list[tuple[int, Outcome]]:
        """Waits for answers for a moment.

        Raises:
            RunError: a replica has died more often than it is started again.
        """
        import ray

        calls = list(self._asked)
        if calls and not self._done and ray.wait(calls, timeout=PATIENCE)[0]:
            for call in ray.wait(calls, num_returns=len(calls), timeout=0)[0]:
                self._done[self._asked.pop(call)], spent = result(call, "an engine replica")
                self._count(spent)
        return self._take_done()

    def cancel(self, ticket: int) -> None:
        import ray

        self._done.pop(ticket, None)
        for call in [call for call, asked in self._asked.items() if asked == ticket]:
            del self._asked[call]
            ray.cancel(call)

    def release(self, session: int) -> None:
        if session in self._homes:
            release = self._replicas[self._homes.pop(session)].release.options(max_task_retries=0)
            release.remote(self._named(session))

    def forget(self) -> None:
        for replica in self._replicas:
            replica.forget.options(max_task_retries=0).remote()

    def update(self, weights: Any, version: int) -> None:
        """Gives all replicas the weights of a module, and waits until they have them.

        Raises:
            RunError: a replica has died more often than it is started again.
        """
        import ray

        state = ray.put({name: value.detach().cpu() for name, value in weights.state_dict().items()})
        put = ray.get_actor(self._store).put.remote([state], version)
        result(put, "the store of weights")  # first: a replica may be started again at any time
        for call in [replica.update.remote(state, version) for replica in self._replicas]:
            self._count(result(call, "an engine replica"))

    def _named(self, session: int) -> int:
        """Name of a session among those of all clients."""
        return derive(0, self._client, session)

    def _count(self, spent: Spent) -> None:
        before = self._spent.get(spent.replica, spent)
        self._spent[spent.replica] = max(before, spent)  # answers may come in another order than they were given
        self.tokens_in = sum(each.tokens_in for each in self._spent.values())
        self.tokens_out = sum(each.tokens_out for each in self._spent.values())
        self.version = max(self.version, spent.version)


def result(call: Any, who: str) -> Any:
    """What a call to an actor returned.

    Raises:
        RunError: the actor is dead and not started again.
        Exception: whatever it raised.
    """
    import ray
    from ray.exceptions import RayActorError, RayTaskError

    try:
        return ray.get(call)
    except RayActorError as e:
        raise RunError(f"{who} is dead: {last_line(e)}; the last checkpoint is whole: resume the run") from e
    except RayTaskError as e:
        raise e.cause from e


def last_line(error: BaseException) -> str:
    """What an error of Ray comes to: its message is long, with the cause at its end."""
    return str(error).strip().rpartition("\n")[2]

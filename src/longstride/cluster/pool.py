"""The pool of a cluster: plans are assigned to workers, each of which plays many episodes at once.

What always holds is what `rollout.pool` says: every plan yields exactly one trajectory, they are returned in the order
that is asked for, plans are assigned by ordinal. A worker that dies is replaced and what it played is played anew; a
plan whose workers died once more than `retries` is a failed trajectory that says so. Plans go only to workers that are
ready, so none waits for a machine that does not come. A thread assigns while others train. Workers do not play in
lockstep, whatever the recipe says: which requests an engine computes together, and the last bits with it, depends on
who asks when.
"""

import heapq
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from longstride.cluster.engine import RemoteEngine, last_line, result
from longstride.core.budget import StopReason
from longstride.core.trajectory import Trajectory
from longstride.models.chat import ChatFormat
from longstride.rollout.episode import Plan
from longstride.rollout.players import LanguagePlayer
from longstride.rollout.pool import Pool
from longstride.rollout.scheduler import PoolConfig, RolloutScheduler
from longstride.run.recipe import Recipe

T = TypeVar("T")

TICK = 0.05
"""Seconds after which new plans are assigned at the latest."""
GRACE = 10.0
"""Seconds that workers have to close their environments."""


class Worker:
    """Plays episodes with tokens from replicas. A Ray actor, of one thread for each episode.

    Args:
        recipe: what is played.
        tokenizer: of the policy.
        replicas: handles of the engine's replicas.
        store: Ray's name for their store of weights.
        slots: episodes at once.
    """

    def __init__(self, recipe: Recipe, tokenizer: Any, replicas: Sequence[Any], store: str, slots: int) -> None:
        engine = RemoteEngine(replicas, store, version=0)
        player = LanguagePlayer(engine, ChatFormat(tokenizer, recipe.chat), recipe.context, recipe.sampling)
        config = recipe.pool.model_copy(update={"lockstep": False})
        self._pool = Pool(player, recipe.env, recipe.reward, slots, config)
        self._pool.__enter__()

    def play(self, plan: Plan) -> Trajectory:
        """One episode; see `Pool.collect` for errors."""
        self._pool.submit([plan])
        return self._pool.collect([plan.ordinal])[0]

    def close(self) -> None:
        """Closes what is open; the worker can be used no more."""
        self._pool.__exit__(None, None, None)


@dataclass(eq=False)
class _Worker:
    """A worker as the pool sees it."""

    actor: Any
    free: int = 0
    """Plans that may be assigned to it; none before it is ready."""


@dataclass
class _Assigned:
    """A plan that is played."""

    worker: _Worker
    tries: int
    plan: Plan


class ClusterPool(RolloutScheduler):
    """Plays plans on workers, with the interface of `rollout.pool.Pool`.

    Args:
        workers: handles of `Worker` actors that are ready, at least one.
        start: starts another one, in place of one that died.
        slots: episodes that each plays at once.
        retries: how often a plan whose worker died is played anew.
        config: `staleness` is what counts of it.
    """

    def __init__(
        self, workers: Sequence[Any], start: Callable[[], Any], slots: int, retries: int, config: PoolConfig
    ) -> None:
        super().__init__()  # `_changed` guards `_waiting` and `_closing` too; only the assigning thread reads the rest
        self.config = config
        self._start, self._slots, self._retries = start, slots, retries
        self._waiting: list[tuple[int, int, Plan]] = []
        """Ordinal, tries so far and plan, as a heap."""
        self._closing = False
        self._workers = [_Worker(worker, slots) for worker in workers]
        self._starting: dict[Any, _Worker] = {}
        self._playing: dict[Any, _Assigned] = {}

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="cluster pool", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Closes the environments of what still plays; what was not collected is lost."""
        import ray

        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        starting = list(self._starting.values())
        closed = [worker.actor.close.remote() for worker in self._workers if worker not in starting]
        if closed:
            ray.wait(closed, num_returns=len(closed), timeout=GRACE)

    def submit(self, plans: Sequence[Plan]) -> None:
        """See the family; a plan is played as soon as a worker is free. Ordinals must be new to this pool."""
        with self._changed:
            for plan in self._ready_of(plans):
                heapq.heappush(self._waiting, (plan.ordinal, 0, plan))
            self._changed.notify_all()

    def collect(self, ordinals: Sequence[int], progress: Callable[[int, int], None] | None = None) -> list[Trajectory]:
        """Waits for the trajectories of plans that were submitted, and returns them in this order.

        Raises:
            RunError: a worker that was to replace another one cannot start; or as in `Pool.collect`.
            Exception: whatever an environment, judge or player raised that is not a failure of infrastructure.
        """
        shown = 0
        while True:
            with self._changed:
                enough = min(shown + 1, len(ordinals))
                self._changed.wait_for(lambda: self._error or self._ready(ordinals) >= enough)  # noqa: B023 (called now)
                if self._error is not None:
                    raise self._error
                ready = self._ready(ordinals)
                found = [self._done.pop(o) for o in ordinals] if ready == len(ordinals) else None
            if ready > shown and progress is not None:
                progress(ready, len(ordinals))
            shown = ready
            if found is not None:
                return found

    def run_on_sampler_thread(self, work: Callable[[], T]) -> T:
        """Does something now: each replica takes new weights between two passes of its own."""
        return work()

    def paused(self) -> AbstractContextManager[None]:
        """Nothing has to stop: replicas serve an evaluation beside the workers."""
        return nullcontext()

    def _ready(self, ordinals: Sequence[int]) -> int:
        return sum(ordinal in self._done for ordinal in ordinals)

    # what follows runs in the thread that assigns

    def _run(self) -> None:
        import ray

        try:
            while not self._closing:
                self._assign()
                calls = [*self._starting, *self._playing]
                if not calls:
                    with self._changed:
                        self._changed.wait_for(lambda: self._waiting or self._closing)
                elif ray.wait(calls, timeout=TICK)[0]:
                    for call in ray.wait(calls, num_returns=len(calls), timeout=0)[0]:
                        self._take(call)
        except BaseException as e:  # whoever collects gets it
            with self._changed:
                self._error = e
                self._changed.notify_all()

    def _assign(self) -> None:
        while (worker := max(self._workers, key=lambda w: w.free)).free:
            with self._changed:
                if not self._waiting:
                    return
                _, tries, plan = heapq.heappop(self._waiting)
            worker.free -= 1
            self._playing[worker.actor.play.remote(plan)] = _Assigned(worker, tries, plan)

    def _take(self, call: Any) -> None:
        import ray
        from ray.exceptions import ObjectLostError, RayActorError, RayTaskError

        if call in self._starting:
            result(call, "a worker that was to replace another one")
            self._starting.pop(call).free = self._slots
            return
        assigned = self._playing.pop(call)
        assigned.worker.free += 1
        try:
            self._keep(ray.get(call))
        except RayTaskError as e:
            raise e.cause from e
        except ObjectLostError as e:  # it was played, and its machine is gone
            self._lost(assigned, e)
        except RayActorError as e:
            if assigned.worker in self._workers:
                self._workers.remove(assigned.worker)
                ray.kill(assigned.worker.actor)  # it may only have been out of reach
                self._add_worker()
            self._lost(assigned, e)

    def _lost(self, assigned: _Assigned, error: BaseException) -> None:
        plan, tries = assigned.plan, assigned.tries + 1
        if tries <= self._retries:
            with self._changed:
                heapq.heappush(self._waiting, (plan.ordinal, tries, plan))
            return
        failure = f"its worker died {tries} times; the last time: {last_line(error)}"
        evidence = {"failure": failure, "task": plan.task.id}
        self._keep(
            Trajectory(
                plan.task,
                plan.ordinal,
                plan.seed,
                plan.budget,
                stop=StopReason.INFRA_FAILURE,
                evidence=evidence,
                group=plan.group,
                iteration=plan.iteration,
                role=plan.role,
                history=len(plan.history),
                after=plan.after,
                env_seed=plan.env_seed,
            )
        )

    def _keep(self, trajectory: Trajectory) -> None:
        with self._changed:
            self._done[trajectory.ordinal] = trajectory
            for plan in self._freed(trajectory.ordinal):
                heapq.heappush(self._waiting, (plan.ordinal, 0, plan))
            self._changed.notify_all()

    def _add_worker(self) -> None:
        worker = _Worker(self._start())
        self._workers.append(worker)
        self._starting[worker.actor.__ray_ready__.remote()] = worker

"""The pool: plays many episodes together, each a coroutine of its own, and all their questions to one player.

What always holds, whatever the latencies: every plan yields exactly one trajectory, and they are returned in the
order that is asked for; nothing is dropped for being slow; admission is by ordinal, oldest first, as soon as a place is
free, so a finished episode is replaced at once; the next episode of a trial comes after the one before; an episode's
content does not depend on how many play beside it. A failed episode is tried again under the same plan before it is
reported as failed. Every environment is closed and every session released, on errors and on Ctrl-C too.

The event loop lives in a thread of its own, the player in another: environments go on while tokens are sampled, and
whoever waits for trajectories can train meanwhile. An environment that blocks the thread cannot be ended, but is named:
who waits for trajectories gets an error that says where it stands.

In lockstep the player is asked when no environment is at work; where its engine has parts that work apart, each part
goes in a lockstep of its own, so that one samples while the environments of another are at work.
"""

import asyncio
import heapq
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError, EngineFailure, OwnCodeError, RunError
from longstride.core.foreign import raised
from longstride.core.trajectory import Trajectory, add_costs
from longstride.envs.base import Env
from longstride.rewards import Reward
from longstride.rollout.deadline import GRACE, where_running, within
from longstride.rollout.episode import Episode, Generation, Plan
from longstride.rollout.players import Player
from longstride.rollout.scheduler import PoolConfig, RolloutScheduler

T = TypeVar("T")
Turns = list[tuple[Episode, Generation | EngineFailure]]

TICK = 1.0
"""Seconds between two looks at whether the pool's thread still answers."""


class Pool(RolloutScheduler):
    """Plays plans. A context manager; `run` alone plays a list of plans and needs none.

    Args:
        player: acts.
        make_env: makes the environment of one episode.
        reward: scores an episode that ended.
        batch: episodes that are live at once, at least 1.
        config: everything else.
    """

    def __init__(
        self,
        player: Player,
        make_env: Callable[[], Env],
        reward: Reward,
        batch: int = 512,
        config: PoolConfig | None = None,
    ) -> None:
        if batch < 1:
            raise ConfigError(f"a pool plays at least 1 episode at once, got batch {batch}")
        self.player, self.make_env, self.reward, self.batch = player, make_env, reward, batch
        super().__init__()
        self.config = config or PoolConfig()
        parts = player.parts if self.config.together else 1
        self._parts = parts if parts <= batch else 1
        """How many parts the episodes are in, by ordinal: each goes in a lockstep of its own."""
        self._waiting: list[list[tuple[int, int, Plan]]] = [[] for _ in range(self._parts)]
        """Of each part ordinal, tries so far and plan, as a heap."""
        self._failed: dict[int, list[Trajectory]] = {}
        """By ordinal, the tries of it that failed."""
        self._live: list[set[asyncio.Task[None]]] = [set() for _ in range(self._parts)]
        """Of each part."""
        self._asked: list[list[tuple[int, Episode, asyncio.Future[Generation | EngineFailure]]]] = [
            [] for _ in range(self._parts)
        ]
        """Questions of each part that the player does not have yet."""
        self._envs: set[int] = set()
        """Identities of those of the live episodes."""
        self._open: dict[Episode, asyncio.Future[Generation | EngineFailure]] = {}
        """Questions that the player has."""
        self._gone: list[list[Episode]] = [[] for _ in range(self._parts)]
        """Episodes of each part that the player does not know yet to be over."""
        self._wanted: list[set[int]] = []
        """Ordinals that each `collect` under way waits for, guarded by `_changed`."""
        self._paused = self._closing = False
        self._idle = threading.Event()
        """Set when a pause has come about."""

    def run(self, plans: Sequence[Plan], progress: Callable[[int, int], None] | None = None) -> list[Trajectory]:
        """Plays all plans in a pool that is not open yet, and closes it.

        Args:
            plans: what is played, each under an ordinal of its own.
            progress: called with (plans done, plans) whenever episodes have ended.

        Returns:
            One trajectory a plan, in the order of `plans`.
        """
        if not plans:
            return []
        with self:
            self.submit(plans)
            return self.collect([plan.ordinal for plan in plans], progress)

    def __enter__(self) -> Self:
        self._open_in(asyncio.new_event_loop())
        self._sampling = ThreadPoolExecutor(1, "player")
        self._thread = threading.Thread(target=self._run, name="pool", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Ends what still plays; what was not collected is lost."""
        self._closing = True
        with suppress(RuntimeError):  # its loop has ended by an error
            self._loop.call_soon_threadsafe(self._wake.set)
        patience = self.config.step_deadline + 3 * GRACE
        self._thread.join(patience)
        if self._thread.is_alive() and error is None:
            raise self._blocked(patience)

    def submit(self, plans: Sequence[Plan]) -> None:
        """See the family; ordinals must be new to this pool."""
        with self._changed:
            ready = self._ready_of(plans)
        self._call(lambda: self._take(ready))

    def collect(self, ordinals: Sequence[int], progress: Callable[[int, int], None] | None = None) -> list[Trajectory]:
        """Waits for the trajectories of plans that were submitted, and returns them in this order.

        Raises:
            RunError: an environment blocks the pool's thread (it is named by where it stands).
            Exception: whatever an environment, judge or player raised that is not a failure of infrastructure.
        """
        shown, check = 0, self._pulse()
        with self._changed:
            wanted = {ordinal for ordinal in ordinals if ordinal not in self._done}
            self._wanted.append(wanted)
        while True:
            with self._changed:
                if self._error is not None:
                    raise self._error
                ready, found = len(ordinals) - len(wanted), None
                if ready == len(ordinals):
                    found = [self._done.pop(ordinal) for ordinal in ordinals]
                    self._wanted = [others for others in self._wanted if others is not wanted]
                elif ready == shown:
                    self._changed.wait(TICK)
            if ready > shown and progress is not None:
                progress(ready, len(ordinals))
            shown = ready
            if found is not None:
                return found
            check()

    def run_on_sampler_thread(self, work: Callable[[], T]) -> T:
        """Does something in the player's thread, where it does not sample: give its engine new weights."""
        return self._sampling.submit(work).result()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While it lasts nothing is asked of the player, and what it was asked is answered: its engine is free.

        Raises:
            RunError: an environment blocks the pool's thread.
        """
        idle, check = threading.Event(), self._pulse()
        self._call(lambda: self._pause(idle))
        while not idle.wait(TICK):
            if self._error is not None:
                raise self._error
            check()
        try:
            yield
        finally:
            self._call(self._go_on)

    def _pulse(self) -> Callable[[], None]:
        """Is called again and again by whoever waits for the pool's thread, and raises where that answers no more."""
        answered, asked = threading.Event(), time.monotonic()
        self._call(answered.set)

        def check() -> None:
            nonlocal asked
            if answered.is_set():
                asked = time.monotonic()
                answered.clear()
                self._call(answered.set)
            elif time.monotonic() - asked > self.config.step_deadline + GRACE:
                raise self._blocked(time.monotonic() - asked)

        return check

    # what follows runs in the pool's thread

    def _open_in(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._wake = loop, asyncio.Event()
        self._closing, self._error = False, None

    def _call(self, what: Callable[[], object]) -> None:
        def call() -> None:
            what()
            self._wake.set()

        with suppress(RuntimeError):  # the loop has ended by an error, which `collect` raises
            self._loop.call_soon_threadsafe(call)

    def _take(self, plans: Sequence[Plan]) -> None:
        for plan in plans:
            self._wait(plan, 0)

    def _wait(self, plan: Plan, tries: int) -> None:
        heapq.heappush(self._waiting[self._part(plan)], (plan.ordinal, tries, plan))

    def _part(self, plan: Plan) -> int:
        """The part that plays it: one for all episodes of a trial."""
        return plan.first % self._parts

    def _pause(self, idle: threading.Event) -> None:
        self._paused, self._idle = True, idle

    def _go_on(self) -> None:
        self._paused = False

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._play())
        except SystemExit as e:
            self._end_with(RunError(f"an environment asked for the end of the program: {raised(e)}"))
        except BaseException as e:  # Ctrl-C in an environment too: whoever collects gets the error
            self._end_with(e)
        try:
            self._loop.run_until_complete(self._leave())
        except BaseException as e:
            self._end_with(e)
        finally:
            self._sampling.shutdown()
            self._loop.close()

    def _end_with(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    async def _play(self) -> None:
        while not self._closing:
            if self._error is not None:
                return
            for waiting, live in zip(self._waiting, self._live, strict=True):
                while waiting and len(live) < self.batch // self._parts:
                    _, tries, plan = heapq.heappop(waiting)
                    task = self._loop.create_task(self._episode(plan, tries), name=plan.task.id)
                    live.add(task)
                    task.add_done_callback(live.discard)
                    task.add_done_callback(self._over)
            if self._ready():
                await self._ask()
            elif self._paused and not self._open and not self._idle.is_set():
                self._idle.set()
            else:
                self._wake.clear()
                await self._wake.wait()

    def _ready(self) -> bool:
        """Whether tokens are to be sampled now."""
        return bool(self._open or (not self._paused and self._complete()))

    def _complete(self) -> list[int]:
        """The parts that may be asked for: in lockstep those of which all live episodes wait."""
        together = self.config.together
        return [k for k, a in enumerate(self._asked) if a and not (together and len(a) < len(self._live[k]))]

    async def _ask(self) -> None:
        """One turn of the player: all that is asked in lockstep, one pass of its engine otherwise, or where several
        locksteps meet in it."""
        asked: list[Episode] = []
        parts = [] if self._paused else self._complete()
        due = [a for k in parts for a in self._asked[k]]
        for _, episode, future in sorted(due, key=lambda a: a[0]):
            asked.append(episode)
            self._open[episode] = future
        for k in parts:
            self._asked[k] = []
        # a part's engine hears of what is over between two locksteps, so that it does not depend on latencies either
        gone: list[Episode] = []
        for k in [0] if self._parts == 1 else parts:
            gone, self._gone[k] = gone + self._gone[k], []
        for episode, turn in await self._turns_of(asked, gone):
            future = self._open.pop(episode)
            if not future.done():
                future.set_result(turn)
        await asyncio.sleep(0)  # episodes that have their turn go on before more is sampled

    async def _turns_of(self, asked: Sequence[Episode], gone: Sequence[Episode]) -> Turns:
        """The turns that a turn of the player brings, which is in its thread."""
        return await self._loop.run_in_executor(self._sampling, self._poll, asked, gone)

    def _poll(self, asked: Sequence[Episode], gone: Sequence[Episode]) -> Turns:
        self._tell(asked, gone)
        done = self.player.poll()
        while not self._enough(done):
            done += self.player.poll()
        return done

    def _tell(self, asked: Sequence[Episode], gone: Sequence[Episode]) -> None:
        """Gives the player what is new."""
        for episode in gone:
            self.player.release(episode)
        for episode in asked:
            self.player.ask(episode)

    def _enough(self, done: Turns) -> bool:
        """Whether the player need not be polled again before the environments go on: in lockstep all have a turn."""
        return not self.config.together or self._parts > 1 or len(done) >= len(self._open) or self._closing

    async def _episode(self, plan: Plan, tries: int) -> None:
        env = self.make_env()
        if id(env) in self._envs:
            raise OwnCodeError(
                f"env() of the tasks gave a {type(env).__name__} in which another episode plays; expected a new one of "
                "each call"
            )
        self._envs.add(id(env))
        episode = Episode(plan, env)
        try:
            await self._bounded(episode, episode.start(self.reward))
            while not episode.ended:
                turn = await self._turn(episode)
                if isinstance(turn, EngineFailure):
                    episode.fail(f"engine: {turn}")
                else:
                    await self._bounded(episode, episode.take(turn, self.reward))
        except BaseException:
            with suppress(Exception):  # the first error is shown: what follows from it may not hide it
                await self._close(episode)
            raise
        await self._close(episode)
        if episode.trajectory.stop is StopReason.INFRA_FAILURE and tries < self.config.retries:
            self._failed.setdefault(plan.ordinal, []).append(episode.trajectory)
            self._wait(plan, tries + 1)
            return
        add_costs(episode.trajectory, self._failed.pop(plan.ordinal, ()))
        with self._changed:
            self._done[plan.ordinal] = episode.trajectory
            for wanted in self._wanted:
                wanted.discard(plan.ordinal)
            freed = self._freed(plan.ordinal)
            self._changed.notify_all()
        self._take(freed)

    async def _close(self, episode: Episode) -> None:
        self._gone[self._part(episode.plan)].append(episode)
        try:
            await within(self.config.step_deadline, episode.close())
        finally:
            self._envs.discard(id(episode.env))

    async def _bounded(self, episode: Episode, coroutine: Coroutine[Any, Any, None]) -> None:
        deadline = self.config.step_deadline
        if stuck := await within(deadline, coroutine):
            episode.fail(f"environment and judge did not finish within {deadline:g} s", where=stuck)

    async def _turn(self, episode: Episode) -> Generation | EngineFailure:
        future: asyncio.Future[Generation | EngineFailure] = self._loop.create_future()
        self._asked[self._part(episode.plan)].append((episode.plan.ordinal, episode, future))
        self._wake.set()
        return await future

    def _over(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end_with(error)
        self._wake.set()

    async def _leave(self) -> None:
        """Ends what plays, closes environments, releases sessions."""
        live = [task for part in self._live for task in part]
        for task in live:
            task.cancel()
        if live:
            await asyncio.wait(live, timeout=self.config.step_deadline + GRACE)
        gone = [episode for part in self._gone for episode in part]
        await self._loop.run_in_executor(self._sampling, self._tell, [], gone)
        await self._loop.shutdown_asyncgens()

    def _blocked(self, seconds: float) -> RunError:
        task = asyncio.current_task(self._loop)
        frame = sys._current_frames().get(self._thread.ident or 0)
        who = f"task {task.get_name()}" if task else "an environment"
        return RunError(
            f"{who} has blocked its thread for {seconds:.0f} s at {where_running(frame)}; an environment must await "
            "what it waits for. The last checkpoint is whole: mend the environment and resume"
        )

"""Rollouts on a virtual clock: scheduler, pool, player and the sharing of servers are those of a run, and servers and
environments below them are drawn from distributions. Hours of a thousand cards pass in minutes of one core.

What always holds: nothing waits for real time, and the same numbers and seed give the same events; what is sampled for
a turn is a function of the turn's seed alone, so episodes can be compared between two ways of playing them.

A simulated id stands for `TOKENS` tokens, so that a hundred thousand episodes fit into memory. A server computes all
that it has together, in passes whose time grows with their number (`PASSES`), and reads the part of a prompt that is
not in its cache first. It dies, or falls silent, and comes back with other weights.
"""

import asyncio
import heapq
import math
import selectors
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from statistics import NormalDist, fmean
from types import TracebackType
from typing import Any, Self

from longstride.core.budget import Budget
from longstride.core.errors import EngineFailure, EnvFailure, LongstrideWarning, RunError
from longstride.core.seeds import derive, stream
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Completion, Outcome, Request, Sampling
from longstride.engines.config import HTTP
from longstride.engines.http import POLL_SECONDS, Taken
from longstride.engines.servers import PULSE, Servers
from longstride.engines.weights import Folder
from longstride.envs.base import Observation, Step
from longstride.rewards import TaskReward
from longstride.rollout.context import Past
from longstride.rollout.episode import Episode, Plan
from longstride.rollout.planning import at_once
from longstride.rollout.players import LanguagePlayer
from longstride.rollout.pool import Pool, Turns
from longstride.rollout.scheduler import PoolConfig

TOKENS = 64
"""That a simulated id stands for."""
PASSES = ((1, 0.030), (64, 0.032), (256, 0.039), (512, 0.081))
"""Seconds of a decoding pass by the number of sequences in it, straight lines between: measured of our own engine with
a model of 0.6 billion parameters on one H100."""
READ = 100_000.0
"""Prompt tokens that a server reads in a second."""
SILENCE = 1.0
"""Seconds after which a connection to a dead server is known to be broken."""


@dataclass(frozen=True)
class Spread:
    """A lognormal distribution, cut off at its end: most are near the middle, and a few are far out."""

    median: float
    sigma: float
    """Of the logarithm: at 1, one in a hundred is ten times the median."""
    most: float

    def at(self, seed: int) -> float:
        """The draw of a seed."""
        u = ((seed * 0x9E3779B97F4A7C15 >> 11) % (1 << 53) + 0.5) / (1 << 53)
        return min(self.median * math.exp(self.sigma * _NORMAL.inv_cdf(u)), self.most)

    @cached_property
    def mean(self) -> float:
        """By the middles of ten thousand equal shares."""
        return fmean(
            min(self.median * math.exp(self.sigma * _NORMAL.inv_cdf((k + 0.5) / 10_000)), self.most)
            for k in range(10_000)
        )


_NORMAL = NormalDist()


@dataclass(frozen=True)
class Workload:
    """What is simulated."""

    places: int
    """Episodes that are live at once."""
    servers: int
    staleness: int = 1
    episodes: int | None = None
    """Of an iteration; as many as there are places where left out."""
    iterations: int = 4
    lockstep: bool | None = None
    turns: Spread = Spread(6, 0.7, 30)
    """Of an episode."""
    tokens: Spread = Spread(128, 0.9, 1024)
    """Sampled in a turn."""
    latency: Spread = Spread(0.5, 1.0, 30)
    """Seconds of a step of an environment."""
    head: int = 384
    """Tokens of a prompt before the first page."""
    page: int = 256
    """Tokens of a page."""
    group: int = 8
    """Episodes that begin with the same prompt."""
    learn: float = 0.0
    """Seconds of an update."""
    push: float = 2.0
    """Seconds in which servers take new weights."""
    crashes: float = 0.0
    """Chance that an environment fails in a step."""
    hangs: float = 0.0
    """Chance that it never comes back from a step."""
    hours: float = math.inf
    """Mean time between two failures of a server."""
    repair: float = 120.0
    """Seconds until it is there again."""
    seed: int = 0

    @property
    def size(self) -> int:
        """Episodes of an iteration."""
        return self.episodes or self.places

    def bound(self) -> float:
        """Tokens a second if all places were filled at every moment and the load were spread evenly, in the mean: what
        no scheduler passes by more than chance."""
        tokens = max(self.tokens.mean, TOKENS)
        apart = self.latency.mean + self.page / READ

        def needed(n: float) -> float:
            """Episodes for `n` sequences in every server's passes."""
            return self.servers * (n + n / pass_seconds(n) / tokens * apart)

        low, high = 1e-9, float(PASSES[-1][0])
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if needed(middle) < self.places else (low, middle)
        return self.servers * low / pass_seconds(low)


def pass_seconds(n: float) -> float:
    """Of a pass with `n` sequences."""
    for (a, x), (b, y) in zip(PASSES, PASSES[1:], strict=False):
        if n <= b:
            return x + (y - x) * max(n - a, 0) / (b - a)
    return PASSES[-1][1]


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while nothing is left to do, and then at once."""

    def __init__(self) -> None:
        selector: Any = selectors.DefaultSelector()
        selector.select = self._skip
        self._now = 0.0
        super().__init__(selector)

    def time(self) -> float:
        return self._now

    def _skip(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RunError("the simulation stands still: nothing is left that could happen")
        self._now += timeout
        return []

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """Does it here and now."""
        future = self.create_future()
        future.set_result(func(*args))
        return future


class SimulatedWorld:
    """Time, chance and what is counted."""

    def __init__(self, workload: Workload) -> None:
        self.workload, self.loop = workload, VirtualLoop()
        self.came = asyncio.Event()
        """Set whenever a server may have answered."""
        self.rng = stream(workload.seed, "world")
        self.tokens = self.turns = 0
        """Sampled; turns that were answered."""
        self.failures = 0
        """Of servers."""
        self.servers: dict[str, SimulatedServer] = {}
        """By address, as they are now."""
        self.waited = 0.0
        """Seconds in which an update waited for what was under way."""

    @property
    def somebody(self) -> bool:
        """Whether a server is there."""
        return any(server.is_there for server in self.servers.values())

    def token_count(self, seed: int) -> int:
        """Ids that a turn's seed samples."""
        return max(1, round(self.workload.tokens.at(derive(seed, "tokens")) / TOKENS))


class SimulatedServer:
    """A server, as `HTTPEngine` is to `Servers`."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world = world
        self._state = "there"
        self.version, self.label, self._says = 0, "", "default"
        self._tickets = count()
        self._open: dict[int, Request] = {}
        self._done: list[tuple[int, Outcome]] = []
        self._cached: dict[int, int] = {}
        """Tokens of each session."""
        self._queue: list[tuple[float, int]] = []
        """Sequences in the passes, by the number of passes at which each ends."""
        self._waiting: list[int] = []
        """Sequences that wait for a place in the passes."""
        self._passes, self._at = 0.0, 0.0
        self._timer: asyncio.TimerHandle | None = None
        if world.workload.hours < math.inf:
            self._fail_later()

    # as a client

    def connect(self, told: Callable[[], None]) -> None:
        """Another client takes the place of the one before."""
        self._told = told
        self._open, self._done = {}, []

    def submit(self, request: Request) -> int:
        inner, loop = next(self._tickets), self._world.loop
        self._open[inner] = request
        if self._state == "dead":
            loop.call_later(SILENCE, self._fail, inner)
        elif self._state == "there":
            session = request.session if request.session is not None else -1
            unread = TOKENS * max(len(request.prompt) - self._cached.get(session, 0), 0)
            self._cached[session] = len(request.prompt)
            loop.call_later(unread / READ, self._enter, inner)
        return inner

    def collect(self) -> list[tuple[int, Outcome]]:
        done, self._done = self._done, []
        return done

    def cancel(self, inner: int) -> None:
        self._open.pop(inner, None)

    def release(self, session: int) -> None:
        self._cached.pop(session, None)

    def look(self) -> "Future[str]":
        found: Future[str] = Future()
        if self._state == "there":
            found.set_result(self._says)
        else:
            found.set_exception(EngineFailure("it is gone"))
        return found

    def check_tokenizer(self) -> None: ...

    def examine(self, samplings: Sequence[Sampling], model: Any = None) -> None: ...

    def prepare(self, weights: Any, version: int) -> None: ...

    def close(self) -> None: ...

    def give(self, weights: Any, version: int, prepared: bool = False) -> Taken:
        if self._state != "there":
            raise EngineFailure("it is gone")
        self._cached.clear()
        self._says = f"version {version}"
        return Taken("m", self._says)

    def take(self, taken: Taken, version: int) -> None:
        self.label, self.version = taken.label, version

    # as a server

    @property
    def is_there(self) -> bool:
        return self._state == "there"

    def _enter(self, inner: int) -> None:
        if inner in self._open and self._state == "there":
            if len(self._queue) < PASSES[-1][0]:
                self._advance()
                passes = TOKENS * self._world.token_count(self._open[inner].seed)
                heapq.heappush(self._queue, (self._passes + passes, inner))
                self._arrange()
            else:
                self._waiting.append(inner)

    def _advance(self) -> None:
        """Up to now."""
        now = self._world.loop.time()
        if self._queue:
            self._passes += (now - self._at) / pass_seconds(len(self._queue))
        self._at = now

    def _arrange(self) -> None:
        """Comes back when the next sequence ends."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._queue:
            left = max(self._queue[0][0] - self._passes, 0.0) * pass_seconds(len(self._queue))
            self._timer = self._world.loop.call_later(left, self._end)

    def _end(self) -> None:
        self._advance()
        ended, self._timer = False, None
        while self._queue and self._queue[0][0] <= self._passes + 1e-6:
            inner = heapq.heappop(self._queue)[1]
            request = self._open.pop(inner, None)
            if request is not None:  # else it was cancelled, and its place is free now
                n = self._world.token_count(request.seed)
                self._world.tokens += n * TOKENS
                self._world.turns += 1
                ids = [request.seed % 1000] * n
                self._done.append((inner, Completion(ids, [-1.0] * n, [self.version] * n, "stop")))
                ended = True
        while self._waiting and len(self._queue) < PASSES[-1][0]:
            self._enter(self._waiting.pop(0))
        self._arrange()
        if ended:
            self._told()

    def _fail_later(self) -> None:
        hours = self._world.rng.expovariate(1 / self._world.workload.hours)
        self._world.loop.call_later(3600 * hours, self._break)

    def _break(self) -> None:
        world = self._world
        self._state = world.rng.choice(["dead", "silent"])
        world.failures += 1
        if self._state == "dead":
            for inner in self._open:
                world.loop.call_later(SILENCE, self._fail, inner)
        self._queue, self._waiting, self._says = [], [], "default"
        self._cached.clear()
        world.loop.call_later(world.workload.repair, self._repair)

    def _repair(self) -> None:
        self._state = "there"
        self._fail_later()

    def _fail(self, inner: int) -> None:
        if self._open.pop(inner, None) is not None:
            self._done.append((inner, EngineFailure("the server is gone")))
            self._told()


class SimulatedEnv:
    """An environment: so many steps as its seed says, of latencies that are drawn."""

    def __init__(self, world: SimulatedWorld) -> None:
        self._world, self._left = world, 0

    async def reset(self, task: Task, seed: int) -> Observation:
        self._left = turns_of(self._world.workload, seed)
        await self._wait()
        return Observation("")

    async def step(self, text: str) -> Step:
        workload, rng = self._world.workload, self._world.rng
        if workload.crashes and rng.random() < workload.crashes:
            raise EnvFailure("it ended")
        if workload.hangs and rng.random() < workload.hangs:
            await asyncio.sleep(1e9)
        await self._wait()
        self._left -= 1
        over = self._left <= 0
        return Step(Observation(""), terminated=over, reward=float(over), action=text)

    async def _wait(self) -> None:
        await asyncio.sleep(self._world.workload.latency.at(self._world.rng.getrandbits(62)))

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None: ...


class _Words:
    """What stands for a chat format."""

    thought_end = None

    def offering(self, functions: Any) -> Self:
        return self

    def decode(self, ids: Sequence[int]) -> str:
        return "go"


class _Prompts:
    """What stands for a context policy: a prompt that grows, and is its group's own."""

    def __init__(self, workload: Workload) -> None:
        self._head, self._page = workload.head // TOKENS, workload.page // TOKENS

    def render(self, chat: Any, past: Past) -> list[int]:
        said = sum(map(len, past.sampled))
        return [int(past.goal)] * (self._head + self._page * len(past.observations) + said)


class SimulatedPool(Pool):
    """The pool, in the one thread of a virtual clock: whoever waits for episodes lets time pass. Its parts are those of
    a run but for the threads."""

    def __init__(self, world: SimulatedWorld, player: LanguagePlayer) -> None:
        w = world.workload
        config = PoolConfig(staleness=w.staleness, lockstep=w.lockstep)
        super().__init__(player, lambda: SimulatedEnv(world), TaskReward(), w.places, config)
        self._world = world
        self.engine: Any = player.engine
        self._sampler = asyncio.Lock()
        """Who has the player's thread."""

    def __enter__(self) -> Self:
        self._open_in(self._world.loop)
        self._sampling: Any = None
        self._all = asyncio.Event()
        """Set when all that is waited for has come, or an error."""
        self._task = self._loop.create_task(self._play())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._closing = True
        self._wake.set()
        self._loop.run_until_complete(self._leave())
        self._task.cancel()
        self._loop.run_until_complete(asyncio.wait([self._task]))
        self._loop.close()

    def collect(self, ordinals: Sequence[int], progress: Callable[[int, int], None] | None = None) -> list[Trajectory]:
        self._wanted = [{ordinal for ordinal in ordinals if ordinal not in self._done}]
        self._loop.run_until_complete(self._until_all())
        return [self._done.pop(ordinal) for ordinal in ordinals]

    def train(self, version: int) -> None:
        """Trains for as long as an update takes, and gives the servers the weights."""
        w = self._world.workload
        self._loop.run_until_complete(asyncio.sleep(w.learn))
        self._loop.run_until_complete(self._update(version, w.push))

    def _call(self, what: Callable[[], object]) -> None:
        what()
        self._wake.set()

    async def _until_all(self) -> None:
        self._all.clear()
        if any(self._wanted):
            await self._all.wait()
        if self._error is not None:
            raise self._error

    def _over(self, task: "asyncio.Task[None]") -> None:
        super()._over(task)
        if not any(self._wanted) or self._error is not None:
            self._all.set()

    async def _turns_of(self, asked: Sequence[Episode], gone: Sequence[Episode]) -> Turns:
        async with self._sampler:
            self._tell(asked, gone)
            done = self.player.poll()
            while not done or not self._enough(done):
                before = bool(done)
                await self._something()
                done += self.player.poll()
                if not before and not self.config.together:
                    break
            return done

    async def _update(self, version: int, seconds: float) -> None:
        async with self._sampler:
            began = self._loop.time()
            while self.engine.is_open:
                await self._something()
                self.engine.keep(self.engine.poll())
            self._world.waited += self._loop.time() - began
            await asyncio.sleep(seconds)
            while not self._world.somebody:  # which an update of the engine does too, in real time
                await asyncio.sleep(PULSE)
            self.engine.update(None, version)

    async def _something(self) -> None:
        """Waits as long as a poll does."""
        self._world.came.clear()
        timer = self._loop.call_later(POLL_SECONDS, self._world.came.set)
        await self._world.came.wait()
        timer.cancel()


def turns_of(workload: Workload, seed: int) -> int:
    """Turns of the episode of a plan's seed."""
    return max(1, round(workload.turns.at(derive(seed, "turns"))))


def plans_of(workload: Workload, iteration: int) -> list[Plan]:
    """The plans of an iteration, each of a group with others. Siblings are as long as their seeds say."""
    first, found = (iteration - 1) * workload.size, []
    for n in range(first, first + workload.size):
        task = _task(n // workload.group)
        seed = derive(workload.seed, "plan", n)
        found.append(Plan(task, n, seed, Budget(turns=10**6, turn_tokens=1024 // TOKENS), group=n // workload.group))
    return found


def _task(group: int) -> Task:
    return Task(id=f"t{group}", source="simulated", goal=str(group), start="")


@dataclass
class Report:
    """What a simulation measured."""

    workload: Workload
    utilisation: float = math.nan
    """Tokens a second, of what is possible (`Workload.bound`), from the first iteration that began after an update to
    the last one that others could follow; nan where there are too few iterations to say."""
    waited: float = 0.0
    """Share of the time in which an update waited for turns that were under way."""
    seconds: float = 0.0
    """Of virtual time."""
    turns: int = 0
    asked_again: int = 0
    failures: int = 0
    failed: int = 0
    """Episodes that failed for good."""
    staleness: list[int] = field(default_factory=list)
    """Updates by which each trained turn was older than what was trained."""
    started: list[int] = field(default_factory=list)
    """Turns that the plans of each trained iteration were for."""
    trained: list[int] = field(default_factory=list)
    """Turns of the episodes that were trained."""

    @property
    def bias(self) -> float:
        """By how much longer trained episodes are than started ones, as a share."""
        return fmean(self.trained) / fmean(self.started) - 1 if self.trained else math.nan


def make_engine(world: SimulatedWorld) -> Servers:
    """All servers as one engine."""
    w = world.workload
    urls = [f"http://s{k}/v1" for k in range(w.servers)]
    config = HTTP(url=tuple(urls), model="m", weights=Folder(path="unused"), timeout=600.0)

    def make(address: str, told: Callable[[], None]) -> Any:
        def both() -> None:
            told()
            world.came.set()

        server = world.servers.get(address)
        if server is None:
            world.servers[address] = server = SimulatedServer(world)
        server.connect(both)
        return server

    policy: Any = _NoPolicy()
    return Servers(config, policy, 0, [], make, world.loop.time, 0.0)


class _NoPolicy:
    model = None


def make_pool(world: SimulatedWorld) -> SimulatedPool:
    """The pool of a workload."""
    words: Any = _Words()
    prompts: Any = _Prompts(world.workload)
    return SimulatedPool(world, LanguagePlayer(make_engine(world), words, prompts, Sampling()))


def simulate(workload: Workload) -> Report:
    """Plays and trains all iterations of a workload."""
    report = Report(workload)
    for _ in iterations(workload, report):
        pass
    return report


def iterations(workload: Workload, report: Report) -> Iterator[tuple[int, list[Trajectory]]]:
    """The iterations of a workload, with their trajectories, before each is trained; the report is filled."""
    world = SimulatedWorld(workload)
    window: list[tuple[float, int]] = []
    last = workload.iterations
    with warnings.catch_warnings(), make_pool(world) as pool:
        warnings.simplefilter("ignore", LongstrideWarning)
        stages = lambda i: at_once(plans_of(workload, i))  # noqa: E731
        for i, trajectories in pool.iterations(stages, 1, last):
            if i in (1 + workload.staleness, last - workload.staleness):
                window.append((world.loop.time(), world.tokens))
            report.started += [turns_of(workload, t.seed) for t in trajectories]
            report.trained += [t.length for t in trajectories if not t.stop.failed]
            report.failed += sum(t.stop.failed for t in trajectories)
            report.staleness += [i - 1 - turn.versions[0] for t in trajectories for turn in t.turns]
            yield i, trajectories
            pool.train(i)
        report.asked_again = int(pool.engine.metrics()["asked_again"])
    if len(window) == 2:
        (begin, before), (end, after) = window
        report.utilisation = (after - before) / (end - begin) / workload.bound()
    report.seconds, report.turns, report.failures = world.loop.time(), world.turns, world.failures
    report.waited = world.waited / report.seconds

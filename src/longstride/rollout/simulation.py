"""The scheduler without a model: a pool whose environments, engine and updates only take time, as laws of latency say.

What always holds: pool, staleness and admission are those of a real run; what an episode is (turns, tokens, latencies)
depends on the seed alone, and not on the order in which anything ends. What is measured is wall-clock time, so the cost
of the pool itself is in it; on a busy machine it says less.
"""

import asyncio
import random
import time
from abc import abstractmethod
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from longstride.core.budget import Budget
from longstride.core.component import Component
from longstride.core.errors import EngineFailure
from longstride.core.seeds import derive, stream
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Observation, Step
from longstride.rewards import TaskReward
from longstride.rollout.episode import Episode, Plan, Said
from longstride.rollout.planning import at_once
from longstride.rollout.pool import Pool
from longstride.rollout.rounds import PoolConfig

Seconds = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


class Latency(Component):
    """Family: how long an environment takes for a turn."""

    @abstractmethod
    def draw(self, rng: random.Random) -> float:
        """Seconds of one turn."""


class ConstantLatency(Latency):
    """Always the same."""

    seconds: Seconds = 0.02

    def draw(self, rng: random.Random) -> float:
        return self.seconds


class LogNormalLatency(Latency):
    """Median times exp(sigma z), z standard normal."""

    median: Seconds = 0.02
    """Seconds."""
    sigma: Annotated[float, Field(ge=0)] = 1.0
    """Deviation of the logarithm."""

    def draw(self, rng: random.Random) -> float:
        return self.median * rng.lognormvariate(0, self.sigma)


class Stragglers(Latency):
    """Some turns take a multiple of what others take."""

    seconds: Seconds = 0.02
    """Of an ordinary turn."""
    share: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Of turns that are slow."""
    factor: Annotated[float, Field(ge=1)] = 20.0
    """How many times slower they are."""

    def draw(self, rng: random.Random) -> float:
        return self.seconds * (self.factor if rng.random() < self.share else 1.0)


class Simulation(Component):
    """What is simulated."""

    seed: int = 0
    iterations: Count = 8
    """Updates."""
    episodes: Count = 64
    """Episodes of an iteration."""
    slots: Count = 32
    """Episodes that are live at once."""
    turns: tuple[Count, Count] = (2, 16)
    """Turns of an episode: uniform between these."""
    tokens: tuple[Count, Count] = (4, 12)
    """Sampled tokens of a turn: uniform between these."""
    act: Latency = ConstantLatency()
    """Latency of the environment in each turn."""
    pass_seconds: Seconds = 0.001
    """What one decoding pass of the engine takes, whoever takes part."""
    row_seconds: Seconds = 0.00005
    """What it takes longer for each episode that takes part."""
    learn_seconds: Seconds = 0.2
    """What an update takes."""
    pool: PoolConfig = PoolConfig()
    """What is tried."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        for name in ("turns", "tokens"):
            low, high = getattr(self, name)
            if high < low:
                raise ValueError(f"{name} go from the least to the most, got {low} to {high}")
        return self

    def plan(self, iteration: int) -> list[Plan]:
        """The episodes of an iteration."""
        first = (iteration - 1) * self.episodes
        task = Task(id="simulated", source="simulation", goal="", start="")
        budget = Budget(turns=self.turns[1])
        return [
            Plan(task, n, derive(self.seed, "episode", n), budget, group=n, iteration=iteration)
            for n in range(first, first + self.episodes)
        ]

    def run(self) -> dict[str, float]:
        """Plays it.

        Returns:
            `seconds`; `bound`, below which no schedule comes, and its parts: `generate` (all tokens in passes with
            all slots), `act` (what episodes hold their slots for, over the slots: latencies, and passes for their own
            tokens alone) and `learn` (all updates); `efficiency` (bound / seconds); `occupancy` (mean share of slots
            with a live episode until the last one is started); `staleness_max` and `staleness`; `length` (mean turns of
            what was trained over mean turns of what was started).
        """
        model, world = _Model(self), _World(self)
        trained: list[Trajectory] = []
        began = time.perf_counter()
        with Pool(model, lambda: _Env(world), TaskReward(), self.slots, self.pool) as pool:
            ages = []
            for i, trajectories in pool.rounds(lambda i: at_once(self.plan(i)), 1, self.iterations):
                time.sleep(self.learn_seconds)
                trained += trajectories
                ages += [i - 1 - v for t in trajectories for turn in t.turns for v in turn.versions]
                pool.between(lambda i=i: model.update(i))
        seconds = time.perf_counter() - began
        parts = {
            "generate": model.tokens * (self.pass_seconds / self.slots + self.row_seconds),
            "act": (world.latency + model.tokens * (self.pass_seconds + self.row_seconds)) / self.slots,
            "learn": self.iterations * self.learn_seconds,
        }
        started = [self.length_of(p.seed) for i in range(1, self.iterations + 1) for p in self.plan(i)]
        bound = max(parts.values())
        return {
            "seconds": seconds,
            "bound": bound,
            "efficiency": bound / seconds,
            "occupancy": world.occupancy(),
            "staleness": sum(ages) / len(ages),
            "staleness_max": max(ages),
            "length": sum(t.length for t in trained) / len(trained) / (sum(started) / len(started)),
            **parts,
        }

    def length_of(self, seed: int) -> int:
        """Turns of an episode."""
        return stream(seed, "turns").randint(*self.turns)


class _Model:
    """A player whose passes take time."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation, self._version = simulation, 0
        self._rows: dict[Episode, tuple[int, list[int]]] = {}
        """Tokens that are still to come, and the versions of those that came."""
        self.tokens = 0

    def ask(self, episode: Episode) -> None:
        self._rows[episode] = stream(episode.turn_seed, "tokens").randint(*self._simulation.tokens), []

    def poll(self) -> list[tuple[Episode, Said | EngineFailure]]:
        said: list[tuple[Episode, Said | EngineFailure]] = []
        if self._rows:
            time.sleep(self._simulation.pass_seconds + self._simulation.row_seconds * len(self._rows))
        self.tokens += len(self._rows)
        for episode, (left, versions) in list(self._rows.items()):
            versions.append(self._version)
            self._rows[episode] = left - 1, versions
            if left == 1:
                n = len(self._rows.pop(episode)[1])
                said.append((episode, Said([], [0] * n, [0.0] * n, versions, "go")))
        return said

    def release(self, episode: Episode) -> None:
        self._rows.pop(episode, None)

    def update(self, version: int) -> None:
        self._version = version


class _World:
    """What all environments share: the clock of occupied slots."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation, self.latency = simulation, 0.0
        self._left = simulation.iterations * simulation.episodes
        self._live, self._busy, self._began, self._at, self._until = 0, 0.0, 0.0, 0.0, 0.0

    def count(self, change: int) -> None:
        """One more live episode, or one less."""
        now = time.perf_counter()
        self._began = self._began or now
        if self._left:  # until the last one starts, for after it slots stand empty whoever schedules
            self._busy += self._live * (now - (self._at or now))
            self._until = now
        self._at, self._live = now, self._live + change
        self._left -= change > 0

    def occupancy(self) -> float:
        return self._busy / max(self._until - self._began, 1e-9) / self.simulation.slots


class _Env:
    def __init__(self, world: _World) -> None:
        self._world, self._live = world, False

    async def reset(self, task: Task, seed: int) -> Observation:
        self._world.count(1)
        self._live = True
        self._left = self._world.simulation.length_of(seed)
        self._rng = stream(seed, "latency")
        return Observation("")

    async def step(self, text: str) -> Step:
        seconds = self._world.simulation.act.draw(self._rng)
        self._world.latency += seconds
        await asyncio.sleep(seconds)
        self._left -= 1
        return Step(Observation(""), terminated=not self._left, action=text)

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        if self._live:
            self._world.count(-1)
            self._live = False

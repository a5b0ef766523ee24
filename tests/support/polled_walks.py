"""A player that answers after some polls, and walks whose length and latencies come from their seed."""

import asyncio
import threading
from collections import Counter

from longstride.core.errors import EngineFailure, EnvFailure
from longstride.core.seeds import stream
from longstride.envs.base import Observation, Step
from longstride.rollout import Generation


class Model:
    """Says `go` after as many polls as the turn's seed wants; every token carries the version it was sampled under."""

    parts = 1

    def __init__(self, most=3, fails=()):
        self.version, self.most, self.fails = 0, most, set(fails)
        self.rows, self.released, self.threads, self.sizes = {}, Counter(), set(), []

    def ask(self, episode):
        assert episode not in self.rows
        self.threads.add(threading.get_ident())
        self.rows[episode] = [stream(episode.turn_seed, "n").randint(1, self.most), []]

    def poll(self):
        said = []
        self.sizes.append(len(self.rows))
        for episode, row in list(self.rows.items()):
            row[0] -= 1
            row[1].append(self.version)
            if not row[0]:
                n = len(self.rows.pop(episode)[1])
                failed = episode.plan.ordinal in self.fails and episode.turns == 1
                answer = Generation([1], [5] * n, [-1.0] * n, row[1], "go")
                said.append((episode, EngineFailure("gone") if failed else answer))
        return said

    def release(self, episode):
        self.rows.pop(episode, None)
        self.released[episode] += 1


class Walk:
    """As many turns as the task's seed says; latencies are drawn from it too."""

    live = 0

    def __init__(self, longest=6, seconds=0.0, trouble=frozenset()):
        self.longest, self.seconds, self.trouble, self.open = longest, seconds, trouble, False

    async def reset(self, task, seed):
        Walk.live += 1
        self.open = True
        self.rng = stream(seed, "walk")
        self.left = self.rng.randint(1, self.longest)
        await self._wait()
        return Observation(f"{self.left} left")

    async def step(self, text):
        await self._wait()
        self.left -= 1
        if (task := int(self.left)) in self.trouble:
            raise EnvFailure(f"trouble {task}")
        return Step(
            Observation(f"{self.left} left"), terminated=not self.left, reward=float(not self.left), action=text
        )

    async def _wait(self):
        if self.seconds:
            await asyncio.sleep(self.seconds * self.rng.random())

    async def final_state(self):
        return {}

    async def close(self):
        Walk.live -= self.open
        self.open = False

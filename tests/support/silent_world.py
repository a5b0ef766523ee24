"""A world in which nothing can be done, and a recipe on it."""

import random
from typing import Any

import longstride as ls


class Silence:
    """A world in which nothing can be done; it breaks where its task says so."""

    async def reset(self, task: ls.Task, seed: int) -> ls.Observation:
        if task.meta.get("broken"):
            raise ls.EnvFailure("the world is gone")
        return ls.Observation("sorry")

    async def step(self, text: str) -> ls.Step:
        return ls.Step(ls.Observation("sorry\nerror: xebec"), error="xebec")

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None:
        pass


class Tasks(ls.TaskSource):
    held: int = 3
    broken: bool = False
    words: str = "search the shop"

    def sample(self, rng: random.Random, n: int) -> list[ls.Task]:
        return [self._task(k) for k in range(n)]

    def held_out(self, n: int) -> list[ls.Task]:
        return [self._task(k) for k in range(self.held)][:n]

    def env(self) -> Silence:
        return Silence()

    def _task(self, k: int) -> ls.Task:
        return ls.Task(id=str(k), source="own", goal=self.words, start="", meta={"broken": self.broken})


LIMITS = {"turns": 2, "turn_tokens": 8}
RECIPE = ls.load_recipe("tti").replace(
    tasks=Tasks(), iterations=4, episodes_per_iteration=2, budget=LIMITS, test_budget=LIMITS, patience=2,
    evaluation={"tasks": 3, "baselines": False},
)  # fmt: skip

"""Several attempts at one puzzle: what methods that teach self-correction are trained on (SCoRe, arXiv 2409.12917).

The first answers do not end the episode: whatever they were, the next observation is `check again`, and the last
attempt ends it. What always holds: all attempts are at the same puzzle, set up anew; the observation after an attempt
says nothing of its verdict. An attempt's score is 1 where it solved the puzzle, else 0, and a turn that ends an attempt
earns what the score changed by: the first one its score, a later one the difference to the score before it. The verdict
of the last attempt is left to the task's evaluator, so that its turn earns minus the score before, and what an episode
earned altogether is the score of its last attempt. A task with a horizon is attempted that many times at most.
"""

import random
from itertools import accumulate
from typing import Annotated, Any

from pydantic import Field

from longstride.core.content import with_lines
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Env, Observation, Step, TaskSource
from longstride.envs.puzzles.base import SOLVED
from longstride.envs.puzzles.mixture import Puzzles

AGAIN = "check again"
"""The observation before another attempt."""


def scores(trajectory: Trajectory) -> list[float]:
    """[T] score of each attempt: what had been earned by then. That of the last one is the reward of the episode."""
    earned = list(accumulate(turn.reward for turn in trajectory.turns))
    return [*earned[:-1], trajectory.reward] if earned else []


class Attempts(TaskSource):
    """Puzzles that may be attempted several times; tasks and splits are those of the puzzles."""

    puzzles: Puzzles = Puzzles()
    """What is attempted."""
    attempts: Annotated[int, Field(ge=2)] = 2
    """Attempts of an episode."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return self.puzzles.sample(rng, n)

    def held_out(self, n: int) -> list[Task]:
        return self.puzzles.held_out(n)

    def env(self) -> "AttemptsEnv":
        return AttemptsEnv(self.puzzles, self.attempts)


class AttemptsEnv:
    """An `Env` in which a puzzle that ended begins again while attempts are left."""

    def __init__(self, puzzles: Puzzles, attempts: int) -> None:
        self._puzzles = puzzles
        self._left = attempts
        self._score = 0.0

    async def reset(self, task: Task, seed: int) -> Observation:
        """Sets the puzzle up. Raises: EnvFailure as the puzzle's own environment."""
        self._task, self._seed = task, seed
        self._left = min(self._left, task.horizon or self._left)
        self._env: Env = self._puzzles.env()
        return await self._env.reset(task, seed)

    async def step(self, text: str) -> Step:
        """Does what the policy's text says; the end of an attempt that is not the last begins the next one."""
        step = await self._env.step(text)
        if not step.terminated:
            return step
        before, self._left = self._score, self._left - 1
        if not self._left:
            step.reward = -before
            return step
        self._score = float((await self._env.final_state())["verdict"] == SOLVED)
        await self._env.close()
        page = await self.reset(self._task, self._seed)
        error = f"error: {step.error}" if step.error else ""
        page.content = with_lines(page.content, error, AGAIN)
        return Step(page, reward=self._score - before, action=step.action, error=step.error)

    async def final_state(self) -> dict[str, Any]:
        """The state of the newest attempt."""
        return await self._env.final_state()

    async def close(self) -> None:
        """Forgets the puzzle."""
        await self._env.close()

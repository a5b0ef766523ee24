"""Attempts at one puzzle that a verifier comments on (Goedel-Prover-V2, arXiv 2508.03613, section 2.1).

An attempt that solves the puzzle ends the episode, and so does the last one. After any other the puzzle is set up
anew, and the next observation has what the verifier says of the attempt (`Puzzle.complaint`). What always holds: what
is said depends on the puzzle, the attempt and the episode's seed alone; a task with a horizon is attempted that many
times at most; all attempts are turns of one episode, so their tokens count.
"""

import random
from typing import Annotated, Any, Literal

from pydantic import Field

from longstride.core.content import with_lines
from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.envs.base import Env, Observation, Step, TaskSource
from longstride.envs.puzzles.base import SOLVED, PuzzleSource
from longstride.envs.puzzles.modular import ModularChain
from longstride.envs.text import AGAIN, STEP_END, thought_of

Told = Literal["complaint", "nothing", "any"]


class Corrected(TaskSource):
    """Puzzles of a single turn that are attempted until one is solved; tasks and splits are those of the puzzles."""

    puzzles: PuzzleSource = ModularChain()
    """What is attempted."""
    attempts: Annotated[int, Field(ge=2)] = 3
    """Attempts of an episode: the first one, and rounds of correction."""
    told: Told = "complaint"
    """What the verifier says of an attempt: what is wrong with it; nothing; or, whatever was wrong, any step of it."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return self.puzzles.sample(rng, n)

    def held_out(self, n: int) -> list[Task]:
        return self.puzzles.held_out(n)

    def subgoal(self, task: Task, text: str) -> Task | None:
        """See `PuzzleSource.subgoal`."""
        return self.puzzles.subgoal(task, text)

    def env(self) -> "CorrectedEnv":
        return CorrectedEnv(self)


class CorrectedEnv:
    """An `Env` in which a puzzle that was not solved begins again, after what the verifier says, while attempts are
    left."""

    def __init__(self, source: Corrected) -> None:
        self._source = source
        self._left = source.attempts

    async def reset(self, task: Task, seed: int) -> Observation:
        """Sets the puzzle up. Raises: EnvFailure as the puzzle's own environment."""
        self._task, self._seed = task, seed
        self._left = min(self._left, task.horizon or self._left)
        self._env: Env = self._source.puzzles.env()
        return await self._env.reset(task, seed)

    async def step(self, text: str) -> Step:
        """Does what the policy's text says; an attempt that fails and is not the last begins the next one."""
        step = await self._env.step(text)
        if not step.terminated:
            return step
        self._left -= 1
        if not self._left or (await self._env.final_state())["verdict"] == SOLVED:
            return step
        await self._env.close()
        page = await self.reset(self._task, self._seed)
        page.content = with_lines(page.content, self._says(text), AGAIN)
        return Step(page, action=step.action, error=step.error)

    def _says(self, text: str) -> str:
        if self._source.told == "complaint":
            return self._source.puzzles.kind.of(self._task).complaint(text)
        steps = [part.strip() for part in thought_of(text).split(STEP_END) if part.strip()]
        if self._source.told == "nothing" or not steps:
            return ""
        return f"{stream(self._seed, 'told', self._left).choice(steps)} no"

    async def final_state(self) -> dict[str, Any]:
        """The state of the newest attempt."""
        return await self._env.final_state()

    async def close(self) -> None:
        """Forgets the puzzle."""
        await self._env.close()

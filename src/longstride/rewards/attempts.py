"""Several attempts at one task: what methods that teach self-correction are trained on (SCoRe, arXiv 2409.12917; RISE,
arXiv 2407.18219).

The first answers do not end the episode: whatever they were, the next observation is `check again`, and the last
attempt ends it. What always holds: all attempts are at the same task, set up anew; the observation after an attempt
says nothing of its verdict. An attempt's score is what the other environment gave in it and what the task's own
evaluator says of it, 1 or 0, and a turn that ends an attempt earns what the score changed by: the first one its score,
a later one the difference to the score before it. The verdict of the last attempt is left to the recipe's reward, so
that what an episode earned altogether is the score of its last attempt. Where a limit cuts an attempt, the score of the
one before it stays, and the episode is no success; so give it as many turns and tokens as all attempts take. A task
with a horizon is attempted that many times at most.
"""

from dataclasses import replace
from itertools import accumulate
from typing import Annotated, Any

from pydantic import Field

from longstride.core.budget import StopReason
from longstride.core.content import with_lines
from longstride.core.errors import ConfigError, TaskError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Env, Observation, OtherTasks, Step, TaskSource
from longstride.envs.interface import ask
from longstride.envs.puzzles import Puzzles
from longstride.envs.text import AGAIN
from longstride.rewards.evaluators import judge


def scores(trajectory: Trajectory) -> list[float]:
    """[T] score of each attempt: what had been earned by then. That of the last one is the reward of the episode."""
    earned = list(accumulate(turn.reward for turn in trajectory.turns))
    return [*earned[:-1], trajectory.reward] if earned else []


def check_attempts(trajectory: Trajectory, times: int) -> None:
    """For what is made of attempts of one turn each.

    Raises:
        ConfigError: its task or its turns ended the episode before there were so many.
    """
    over = trajectory.stop.terminated or trajectory.stop is StopReason.TURNS
    if over and trajectory.length < times:
        raise ConfigError(
            f"an episode of {trajectory.task.source} was over after {trajectory.length} of {times} attempts: set "
            f"tasks.type=attempts with what is attempted as tasks.tasks, and at least {times} as tasks.attempts and as "
            "turns of budget and test_budget"
        )


class Attempts(OtherTasks):
    """Other tasks, which may be attempted several times. A task without an evaluator is scored by what its environment
    gives; a reward of your own judges the last attempt alone."""

    tasks: TaskSource = Puzzles()
    """What is attempted."""
    attempts: Annotated[int, Field(ge=2)] = 2
    """Attempts of an episode."""

    def env(self) -> "AttemptsEnv":
        return AttemptsEnv(self.tasks, self.attempts)


class AttemptsEnv:
    """An `Env` in which a task that ended begins again while attempts are left."""

    def __init__(self, tasks: TaskSource, attempts: int) -> None:
        self._tasks = tasks
        self._left = attempts
        self._score = 0.0

    async def reset(self, task: Task, seed: int) -> Observation:
        """Sets the task up. Raises: EnvFailure as its own environment."""
        self._task, self._seed, self._given = task, seed, 0.0
        self._left = min(self._left, task.horizon or self._left)
        self._env: Env = self._tasks.env()
        return await ask(Observation, self._env, "reset", task, seed)

    async def step(self, text: str) -> Step:
        """Does what the policy's text says; the end of an attempt that is not the last begins the next one.

        Raises:
            EnvFailure: as the other environment.
            ConfigError: the evaluator cannot tell what an attempt is worth.
        """
        step = await ask(Step, self._env, "step", text)
        self._given += step.reward
        if not step.terminated:
            return step
        before, self._left = self._score, self._left - 1
        if not self._left:
            return replace(step, reward=step.reward - before)
        verdict = await self._verdict(step.answer)
        self._score = self._given + verdict
        await ask(object, self._env, "close")
        page = await self.reset(self._task, self._seed)
        error = f"error: {step.error}" if step.error else ""
        page.content = with_lines(page.content, error, AGAIN)
        return Step(page, reward=step.reward + verdict - before, action=step.action, error=step.error)

    async def _verdict(self, answer: str | None) -> float:
        """What the evaluator says of the attempt that has ended; 0 where the task has none."""
        if not self._task.evaluator:
            return 0.0
        state = await ask(dict, self._env, "final_state")
        try:
            return judge(self._task, answer, state).reward
        except TaskError as e:
            raise ConfigError(f"tasks attempts: an attempt is scored by its task's evaluator alone, and {e}") from e

    async def final_state(self) -> dict[str, Any]:
        """The state of the newest attempt."""
        return await ask(dict, self._env, "final_state")

    async def close(self) -> None:
        """Closes the other environment."""
        await ask(object, self._env, "close")

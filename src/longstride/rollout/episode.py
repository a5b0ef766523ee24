"""One episode: its plan, its live state, and the rules of a turn and of ending.

What always holds: the randomness of a turn comes from the plan and the number of the turn alone, so an episode is the
same whoever its neighbours are and however often it was tried; the environment is seeded with `plan.seed` (shared by
a group), sampling also with `plan.ordinal` (not shared). A turn is recorded when the environment has taken it, and
never after the episode ended.

| what happened | stop reason | judged |
|---|---|---|
| an answer | `answered` | yes |
| the environment ended the task | `env_ended` | yes, without an answer |
| a limit of the budget, the first that ran out | its own | no: 0 (TTI), unless an answer is held (`HELD_ANSWER`) |
| the environment cut the episode from outside | `turns` | likewise |
| no room in the model's context (no step is taken) | `context` | likewise |
| an `EnvFailure`, `EngineFailure`, `JudgeFailure`, a turn past its deadline | `infra_failure` | never: it is failed |
"""

import itertools
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import EnvFailure, JudgeFailure
from longstride.core.seeds import derive
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.base import HELD_ANSWER, Env, Observation, Step
from longstride.rewards import Verdict

Judge = Callable[[Task, str | None, dict[str, Any], int], Verdict | Awaitable[Verdict]]
"""Task, answer, final state and seed to verdict: a `longstride.rewards.Reward`. One that asks a server returns a
coroutine: it is awaited as part of the turn, so it holds up no other episode and the turn's deadline bounds it too."""

_log = logging.getLogger(__name__)
_serials = itertools.count()


@dataclass(frozen=True)
class Plan:
    """An episode that is to be played."""

    task: Task
    ordinal: int
    """Position in the stream of started episodes."""
    seed: int
    budget: Budget
    group: int = 0
    iteration: int = 0
    prefix: tuple[int, ...] = ()
    """Ids that the first turn begins with, as if the policy had said them; they are read and never trained."""
    role: str = ""
    """What a sampler made it for; see `planning`."""


@dataclass(slots=True)
class Said:
    """What a player said in one turn; see `Turn` for the first five."""

    prompt_ids: list[int]
    sampled_ids: list[int]
    logprobs: list[float]
    versions: list[int]
    text: str
    finish: Literal["stop", "length", "context"] = "stop"


class Episode:
    """The live state of one episode. Its coroutines never raise `EnvFailure` or `JudgeFailure`: they end the episode
    as failed."""

    def __init__(self, plan: Plan, env: Env) -> None:
        turns = min(plan.budget.turns, plan.task.horizon or plan.budget.turns)
        budget = plan.budget.model_copy(update={"turns": turns})
        self.plan = plan
        self.env = env
        self.session = next(_serials)
        """The engine's name for this episode's cache: unique in the process, and nothing else depends on it."""
        self.observations: list[str] = []
        self.ended = False
        self.trajectory = Trajectory(
            plan.task, plan.ordinal, plan.seed, budget, group=plan.group, iteration=plan.iteration,
            prefix=list(plan.prefix), role=plan.role,
        )  # fmt: skip
        self._url = ""
        self._tokens = len(plan.prefix)
        self._tool_calls = 0
        self._held_answer: str | None = None
        self._began = time.monotonic()

    @property
    def goal(self) -> str:
        return self.trajectory.task.goal

    @property
    def turns(self) -> int:
        """Turns taken."""
        return len(self.trajectory.turns)

    @property
    def opening(self) -> list[int]:
        """The ids that the turn that comes next begins with."""
        return [] if self.turns else self.trajectory.prefix

    @property
    def said(self) -> list[list[int]]:
        """The ids of each turn: what it began with and what was sampled."""
        turns = self.trajectory.turns
        return [self.trajectory.prefix + turns[0].sampled_ids, *(t.sampled_ids for t in turns[1:])] if turns else []

    @property
    def turn_seed(self) -> int:
        """Seed of the sampling of the turn that comes next."""
        return derive(self.plan.seed, "turn", self.plan.ordinal, self.turns)

    @property
    def max_new(self) -> int:
        """Tokens that may be sampled in the turn that comes next, at least 1; what it begins with is part of it."""
        budget = self.trajectory.budget
        rest = budget.turn_tokens - len(self.opening)
        return max(1, rest if budget.tokens is None else min(rest, budget.tokens - self._tokens))

    async def start(self) -> None:
        """Resets the environment."""
        self._began = time.monotonic()
        try:
            first = await self.env.reset(self.plan.task, self.plan.seed)
            if first.goal:
                self.trajectory.task = self.plan.task.model_copy(update={"goal": first.goal})
            self._see(first)
        except EnvFailure as e:
            self.fail(e)

    async def take(self, said: Said, judge: Judge) -> None:
        """Takes one turn; ends and judges the episode where the rules say so."""
        try:
            if said.finish == "context":
                await self._end(StopReason.CONTEXT, None, judge)
                return
            began = time.monotonic()
            step = await self.env.step(said.text)
            if self.ended:  # the pool has given it up meanwhile
                return
            self._record(said, step, time.monotonic() - began)
            stop = self._stop(step)
            if stop is not None:
                await self._end(stop, step.answer, judge)
        except (EnvFailure, JudgeFailure) as e:
            self.fail(e)

    def fail(self, cause: object, where: str = "") -> None:
        """Ends the episode as failed. The evidence names the task, the turn (from 1; 0 is the reset) and the place."""
        trajectory = self.trajectory
        trajectory.stop = StopReason.INFRA_FAILURE
        trajectory.reward = 0.0
        trajectory.evidence = {"failure": str(cause), "task": self.plan.task.id, "turn": self._turn_number()}
        if where:
            trajectory.evidence["where"] = where
        self._finish()

    async def close(self) -> None:
        """Closes the environment; trouble there is logged, for the episode is over."""
        try:
            await self.env.close()
        except EnvFailure as e:
            _log.warning("task %s: closing the environment failed: %s", self.plan.task.id, e)

    def _turn_number(self) -> int:
        return self.turns + 1 if self.observations else 0

    def _see(self, observation: Observation) -> None:
        self.observations.append(observation.text)
        self._url = observation.url

    def _record(self, said: Said, step: Step, seconds: float) -> None:
        seen = self.observations[-1]
        turn = Turn(
            said.prompt_ids, said.sampled_ids, said.logprobs, said.versions, observation=seen, text=said.text,
            action=step.action, error=step.error, url=self._url, changed=step.observation.text != seen,
            reward=step.reward, seconds=seconds,
        )  # fmt: skip
        self.trajectory.turns.append(turn)
        self._tokens += len(said.sampled_ids)
        self._tool_calls += turn.verb != "answer"
        self._held_answer = step.info.get(HELD_ANSWER, self._held_answer)
        self._see(step.observation)

    def _stop(self, step: Step) -> StopReason | None:
        if step.answer is not None:
            return StopReason.ANSWERED
        if step.terminated:
            return StopReason.ENV_ENDED
        if step.truncated:
            return StopReason.TURNS
        seconds = time.monotonic() - self._began
        return self.trajectory.budget.exhausted(self.turns, self._tokens, self._tool_calls, seconds)

    async def _end(self, stop: StopReason, answer: str | None, judge: Judge) -> None:
        trajectory, plan = self.trajectory, self.plan
        if stop.truncated:
            answer = self._held_answer
        reward, evidence = sum(turn.reward for turn in trajectory.turns), {}
        if plan.task.evaluator and (stop.terminated or answer is not None):
            state = await self.env.final_state()
            verdict = judge(plan.task, answer, state, derive(plan.seed, "reward", plan.ordinal))
            if isinstance(verdict, Awaitable):
                verdict = await verdict
            if self.ended:
                return
            reward, evidence = reward + verdict.reward, verdict.evidence
        trajectory.stop, trajectory.answer = stop, answer
        trajectory.reward, trajectory.evidence = reward, evidence
        self._finish()

    def _finish(self) -> None:
        self.trajectory.seconds = time.monotonic() - self._began
        self.ended = True

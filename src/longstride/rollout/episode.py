"""One episode: its plan, its live state, and the rules of a turn and of ending.

What always holds: the randomness of a turn comes from the plan and the number of the turn alone, so an episode is the
same whoever its neighbours are and however often it was tried; the environment is seeded with `plan.seed` (shared by
a group) or with `plan.env_seed`, sampling with `plan.seed` and `plan.ordinal` (not shared). A turn is recorded when the
environment has taken it, and never after the episode ended. Every episode that does not fail gets a verdict.

The rules of ending are asked in this order after every turn; the first that holds is the stop reason:

| what happened | stop reason | |
|---|---|---|
| an answer | `answered` | terminated |
| the environment ended the task, and the turn was cut before it had an action | `tokens` | truncated |
| the environment ended the task because it could not parse the turn | `parse_failure` | terminated |
| the environment ended the task | `env_ended` | terminated |
| the environment cut the episode from outside | `env_truncated` | truncated |
| a limit of the budget ran out | its own | truncated |

A cut turn that does not end the task is a turn like any other: the environment explains what was wrong, and goes on.
Apart from these, an episode ends without a step: at a mark (`mark`), where the model's context has no room (`context`),
and, with no verdict, by an `EnvFailure`, `EngineFailure`, `JudgeFailure` or a turn past its deadline (`infra_failure`),
or where its trial was over before it began (`unplayed`).
"""

import itertools
import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from longstride.core.budget import Budget, StopReason
from longstride.core.content import Content, Media, by_placeholder, media_of, text_in
from longstride.core.errors import EnvFailure, JudgeFailure
from longstride.core.seeds import derive
from longstride.core.task import Task
from longstride.core.trajectory import LOGPROB_DIGITS, Finish, Trajectory, Turn, Usage, without_error
from longstride.envs.base import HELD_ANSWER, Counting, Env, Observation, Outlasting, Step
from longstride.envs.interface import ask
from longstride.envs.requests import ChatRequest
from longstride.envs.tools import Tool
from longstride.models.thoughts import spoken
from longstride.rewards import Reward, Verdict
from longstride.rollout.context import Past, SpentBudget
from longstride.rollout.interface import ask_reward
from longstride.rollout.trial import Trial

_log = logging.getLogger(__name__)
_serials = itertools.count()


class PastTurn(NamedTuple):
    """A turn of an earlier episode, to be played again."""

    text: str
    ids: tuple[int, ...]
    budgeted: int | None = None
    """See `Turn.budgeted`; left out, as many as there are ids."""

    @classmethod
    def of(cls, turns: Iterable[Turn]) -> "tuple[PastTurn, ...]":
        """Turns that were taken."""
        return tuple(cls(turn.text, tuple(turn.ids), turn.budgeted) for turn in turns)


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
    """Ids that its first turn of its own begins with, as if the policy had sampled them; they are read and never
    trained."""
    role: str = ""
    """What a sampler made it for; see `planning`."""
    history: tuple[PastTurn, ...] = ()
    """Turns that are played again in the fresh environment before it begins: read and never trained. They count in the
    budget."""
    marks: tuple[tuple[int, ...], ...] = ()
    """Ids at which generation pauses, and the episode with it (`StopReason.MARK`)."""
    trial: Trial = Trial()
    """What it is a part of."""
    after: tuple[int, ...] = ()
    """Ordinals of the episodes before it in its trial, the first one first."""
    earlier: tuple[Trajectory, ...] | None = None
    """Those of them that were played; None before the last of them has ended."""
    env_seed: int | None = None
    """Seed of the environment where it is not `seed`: that of an earlier episode, which this one goes on from (see
    `planning.Planner.group`)."""

    @property
    def first(self) -> int:
        """Ordinal of the first episode of its trial; its own where it stands alone."""
        return self.after[0] if self.after else self.ordinal

    def following(self, earlier: Sequence[Trajectory]) -> Self:
        """The plan, now that all episodes before it in its trial have ended."""
        return replace(self, earlier=tuple(t for t in earlier if t.turns and not t.stop.failed))

    @property
    def turns(self) -> int:
        """Turns that the episode may take."""
        return min(self.budget.turns, self.task.horizon or self.budget.turns)


@dataclass(slots=True)
class Generation:
    """What a player generated for one turn; the fields are those of `Turn`."""

    prompt_ids: list[int]
    sampled_ids: list[int]
    behaviour_logprobs: list[float]
    versions: list[int]
    text: str
    finish: Finish = "stop"
    given: int = 0
    thought: int = 0
    media: tuple[Media, ...] = ()
    usage: Usage | None = None
    replayed: int = 0
    """Tokens that the budget counts of a turn that is played again."""


class Episode:
    """The live state of one episode. Its coroutines never raise `EnvFailure` or `JudgeFailure`: they end the episode
    as failed."""

    def __init__(self, plan: Plan, env: Env) -> None:
        left = plan.trial.left(plan.budget.model_copy(update={"turns": plan.turns}), plan.earlier or ())
        self._over = left is None
        """Whether its trial was over before it began."""
        self.plan = plan
        self.env = env
        self._counting = env if isinstance(env, Counting) else None
        self.session = next(_serials)
        """The engine's name for this episode's cache: unique in the process, and nothing else depends on it."""
        self.observations: list[Content] = []
        self.media = by_placeholder(media for t in plan.earlier or () for media in t.media)
        """All images and data that its prompts may have."""
        self.speaker = ""
        """Whose turn is next."""
        self.tools: tuple[Tool, ...] = ()
        """What is acted with, where tools are called."""
        self.requests: list[ChatRequest | None] = []
        """What a program asked with each observation."""
        self.ended = False
        self.trajectory = Trajectory(
            plan.task,
            plan.ordinal,
            plan.seed,
            left or plan.budget,
            group=plan.group,
            iteration=plan.iteration,
            role=plan.role,
            history=len(plan.history),
            after=plan.after,
            env_seed=plan.env_seed,
        )
        self._url = ""
        self._tokens = len(plan.prefix)
        self._spent: list[SpentBudget] = []
        self._tool_calls = 0
        self._held_answer: str | None = None
        self._began = time.monotonic()

    @property
    def goal(self) -> str:
        return self.trajectory.task.goal

    @property
    def functions(self) -> list[dict[str, Any]]:
        """The tools, as a chat template presents them."""
        return [tool.function for tool in self.tools]

    @property
    def page(self) -> str:
        """The text of what is seen now."""
        return text_in(self.observations[-1])

    @property
    def turns(self) -> int:
        """Turns taken."""
        return len(self.trajectory.turns)

    @property
    def opening(self) -> list[int]:
        """The ids that the turn that comes next begins with."""
        return list(self.plan.prefix) if self.turns == len(self.plan.history) else []

    @property
    def turn_ids(self) -> list[list[int]]:
        """The ids of each turn: what it began with and what was sampled."""
        return [turn.ids for turn in self.trajectory.turns]

    @property
    def past(self) -> Past:
        """What a context policy makes the next prompt of."""
        turns = self.trajectory.turns
        return Past(
            self.goal,
            self.observations,
            self.turn_ids,
            [turn.reward for turn in turns],
            self.plan.earlier or (),
            self.trajectory.budget,
            self._spent,
            self.requests,
            [turn.action for turn in turns],
        )

    @property
    def turn_seed(self) -> int:
        """Seed of the sampling of the turn that comes next."""
        return derive(self.plan.seed, "turn", self.plan.ordinal, self.turns)

    @property
    def max_thought(self) -> int | None:
        """Tokens of thought that may be sampled in a turn; None where it has no limit of its own."""
        return self.trajectory.budget.thought_tokens

    @property
    def max_new(self) -> int:
        """Tokens that may be sampled in the turn that comes next, at least 1; what it begins with is part of it."""
        budget, request = self.trajectory.budget, self.requests[-1] if self.requests else None
        rest = min(budget.turn_tokens, request.most if request and request.most else budget.turn_tokens)
        rest -= len(self.opening)
        return max(1, rest if budget.tokens is None else min(rest, budget.tokens - self._tokens))

    async def start(self, reward: Reward) -> None:
        """Resets the environment, and plays again what the plan takes over from an earlier episode."""
        self._began = time.monotonic()
        if self._over:
            self.trajectory.stop = StopReason.UNPLAYED
            self.trajectory.evidence = {"failure": "its trial was over", "task": self.plan.task.id, "turn": 0}
            self._finish()
            return
        seed = self.plan.seed if self.plan.env_seed is None else self.plan.env_seed
        try:
            first = await ask(Observation, self.env, "reset", self.plan.task, seed)
            goal = first.goal or self.goal
            manual = str(first.manual) if first.manual is not None and first.manual.needed else ""
            if not goal.endswith(manual):  # it does where the task is that of an earlier episode
                goal = f"{goal}\n{manual}"
            if goal != self.goal:
                self.trajectory.task = self.plan.task.model_copy(update={"goal": goal})
            self._offer(first.tools)
            self._see(first)
        except EnvFailure as e:
            self.fail(e)
        for text, ids, budgeted in self.plan.history:
            if not self.ended:
                spent = len(ids) if budgeted is None else budgeted
                await self.take(Generation(list(ids), [], [], [], text, given=len(ids), replayed=spent), reward)

    async def take(self, generation: Generation, reward: Reward) -> None:
        """Takes one turn; ends and scores the episode where the rules say so."""
        try:
            if generation.finish == "context":
                self.trajectory.cut_tokens = len(generation.sampled_ids) + generation.thought
                await self._end(StopReason.CONTEXT, None, reward)
                return
            if generation.finish == "mark":
                self._record(generation, Step(Observation(self.observations[-1], self._url)), 0.0)
                await self._end(StopReason.MARK, None, reward)
                return
            if self._counting is not None:
                read = len(generation.prompt_ids)
                self._counting.sampled(generation.sampled_ids, generation.behaviour_logprobs, read, generation.finish)
            began = time.monotonic()
            step = await ask(Step, self.env, "step", spoken(generation.text))
            if self.ended:  # the pool has given it up meanwhile
                return
            self._record(generation, step, time.monotonic() - began)
            stop = self._stop(generation, step)
            if stop is not None:
                await self._end(stop, step.answer, reward)
        except (EnvFailure, JudgeFailure) as e:
            self.fail(e)

    def fail(self, cause: object, where: str = "") -> None:
        """Ends the episode as failed. The evidence names the task, the turn (from 1; 0 is the reset) and the place."""
        set_failure(self.trajectory, cause, self._turn_number())
        if where:
            self.trajectory.evidence["where"] = where
        self._finish()

    async def close(self) -> None:
        """Closes the environment; trouble there is logged, for the episode is over."""
        if self._over:  # nothing was opened
            return
        try:
            await ask(object, self.env, "close")
        except EnvFailure as e:
            _log.warning("task %s: closing the environment failed: %s", self.plan.task.id, e)

    def _turn_number(self) -> int:
        return self.turns + 1 if self.observations else 0

    def _offer(self, tools: tuple[Tool, ...]) -> None:
        self.tools, told = tools, self.trajectory.tools
        self.trajectory.tools += tuple(function for function in self.functions if function not in told)

    def _see(self, observation: Observation) -> None:
        self.observations.append(observation.content)
        self.requests.append(observation.request)
        if observation.request:
            self._offer(observation.request.tools)
        self._spent.append(SpentBudget(self.turns, self._tokens, self._tool_calls))
        try:
            self.media |= by_placeholder([*self.media.values(), *media_of(observation.content)])
        except ValueError as e:  # made so that their names are the same
            raise EnvFailure(str(e)) from e
        self._url, self.speaker = observation.url, observation.speaker

    def _record(self, generation: Generation, step: Step, seconds: float) -> None:
        seen, before = self.observations[-1], self.trajectory.turns[-1].error if self.turns else None
        request, begun = self.requests[-1], len(self.opening)
        turn = Turn(
            generation.prompt_ids,
            generation.sampled_ids,
            [round(x, LOGPROB_DIGITS) for x in generation.behaviour_logprobs],
            generation.versions,
            observation=seen,
            text=generation.text,
            action=step.action,
            error=step.error,
            url=self._url,
            changed=without_error(step.observation.content, step.error) != without_error(seen, before),
            reward=step.reward,
            seconds=seconds,
            finish=generation.finish,
            given=generation.given,
            speaker=self.speaker,
            media=generation.media,
            usage=generation.usage,
            fork=request.fork if request else "",
            thought=generation.thought,
        )
        spent = turn.sampled_tokens + generation.replayed
        turn.budgeted = spent + begun if spent + begun != len(turn.ids) else None
        self.trajectory.turns.append(turn)
        self._tokens += spent
        self._tool_calls += turn.verb != "answer"
        self._held_answer = step.info.get(HELD_ANSWER, self._held_answer)
        self._see(step.observation)
        if self.plan.trial.episodes > 1:
            self.trajectory.final = step.observation.content

    def _stop(self, generation: Generation, step: Step) -> StopReason | None:
        """The rules of ending, in order (see the module's docstring)."""
        if step.answer is not None:
            return StopReason.ANSWERED
        if step.terminated and step.action is None:
            return StopReason.TOKENS if generation.finish == "length" else StopReason.PARSE_FAILURE
        if step.terminated:
            return StopReason.ENV_ENDED
        if step.truncated:
            return StopReason.ENV_TRUNCATED
        seconds = time.monotonic() - self._began
        return self.trajectory.budget.exhausted(self.turns, self._tokens, self._tool_calls, seconds)

    async def _end(self, stop: StopReason, answer: str | None, reward: Reward) -> None:
        trajectory, plan = self.trajectory, self.plan
        trajectory.stop, trajectory.answer = stop, self._held_answer if stop.truncated else answer
        if stop.truncated and isinstance(self.env, Outlasting):
            late = await ask(object, self.env, "outlasted")
            trajectory.answer = late if isinstance(late, str) else trajectory.answer
        state = await ask(dict, self.env, "final_state") if reward.needs_state(trajectory) else {}
        verdict = await ask_reward(reward, trajectory, state, derive(plan.seed, "reward", plan.ordinal))
        if self.ended:
            return
        set_verdict(trajectory, verdict)
        self._finish()

    def _finish(self) -> None:
        self.trajectory.seconds = time.monotonic() - self._began
        self.ended = True


def set_failure(trajectory: Trajectory, cause: object, turn: int) -> None:
    """Makes an episode one that failed, in this turn."""
    trajectory.stop = StopReason.INFRA_FAILURE
    trajectory.reward, trajectory.success, trajectory.terms = 0.0, False, {}
    trajectory.evidence = {"failure": str(cause), "task": trajectory.task.id, "turn": turn}


def set_verdict(trajectory: Trajectory, verdict: Verdict) -> None:
    """Scores an episode: what the environment gave turn by turn, and what the verdict gives for the whole."""
    trajectory.reward = trajectory.earned + verdict.reward
    trajectory.success, trajectory.terms = verdict.success, verdict.terms
    trajectory.evidence = verdict.evidence

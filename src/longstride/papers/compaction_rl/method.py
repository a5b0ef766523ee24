"""Tasks that ask for a summary when the context is full (`Compacting`), the context that goes on from it (`Compacted`), and credit
across what lies between summaries (`AcrossSegments`)."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError
from longstride.core.numbers import CountOrZero, Limit, Share
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.base import Counting, Env, Noting, Observation, OtherTasks, Step
from longstride.envs.interface import ask
from longstride.methods import Advantage, Credit
from longstride.methods.advantages import GAE
from longstride.rollout.context import ContextPolicy, FullHistory, Past, PromptPieces

SUMMARY = "summary"
"""The action of a turn that was a summary: no environment takes it."""


class Compacting(OtherTasks):
    """Other tasks; when what was read and said since the last summary is too much, the policy is asked for a summary before it
    sees what came of its action. The summary is a turn like any other: it is sampled, counted and trained.

    It goes with the context policy `Compacted`. One of `tokens` and `turns` at least is set.
    """

    tokens: Limit = None
    """A summary is asked for after a turn that read and said so many tokens together."""
    turns: Limit = None
    """A summary is asked for after so many turns."""
    request: str = "Summarise what you have found and what is left to do."
    """The words that ask for it."""

    @model_validator(mode="after")
    def _asks_at_some_time(self) -> Self:
        if self.tokens is None and self.turns is None:
            raise ValueError("say when a summary is asked for: after so many turns, or at so many tokens of a context")
        return self

    def env(self) -> "CompactingEnv":
        return CompactingEnv(self, self.tasks.env())

    def demonstrate(self, task: Task) -> list[str]:
        """A solution of the other source, with a summary after every `turns` turns of it.

        Raises:
            ConfigError: the other source does not know what is to be remembered, or a number of tokens decides.
        """
        if not isinstance(self.tasks, Noting) or self.turns is None or self.tokens is not None:
            raise ConfigError(
                f"summaries are demonstrated where `turns` alone decides and tasks know what to note; {self.tasks.type_name()} "
                f"has turns={self.turns}, tokens={self.tokens}: set turns, take dial_codes, or let a model demonstrate"
            )
        said: list[str] = []
        for k, text in enumerate(self.tasks.demonstrate(task)):
            if k and k % self.turns == 0:
                said.append(self.tasks.note(task, k - 1))
            said.append(text)
        return said


class CompactingEnv:
    """An `Env` around another one: it holds back what came of an action until it has a summary."""

    def __init__(self, source: Compacting, env: Env) -> None:
        self._source, self._env = source, env
        self.final_state, self.close = env.final_state, env.close
        self._turns = self._tokens = 0
        self._held: Observation | None = None

    async def reset(self, task: Task, seed: int) -> Observation:
        """Opens the other environment. Raises: EnvFailure as that does."""
        return await ask(Observation, self._env, "reset", task, seed)

    def sampled(self, ids: list[int], logprobs: list[float], read: int, finish: str) -> None:
        """How much the turn that comes read and said."""
        self._tokens = read + len(ids)
        if isinstance(self._env, Counting) and self._held is None:
            self._env.sampled(ids, logprobs, read, finish)

    async def step(self, text: str) -> Step:
        """Does what the policy's text says, or keeps it as a summary. Raises: EnvFailure as the other environment."""
        if self._held is not None:
            seen, self._held, self._turns = self._held, None, 0
            return Step(seen, action=SUMMARY)
        step = await ask(Step, self._env, "step", text)
        self._turns += 1
        if step.terminated or step.truncated or not self._is_full():
            return step
        self._held = step.observation
        return replace(step, observation=replace(self._held, content=self._source.request))

    def _is_full(self) -> bool:
        tokens, turns = self._source.tokens, self._source.turns
        return (tokens is not None and self._tokens >= tokens) or (turns is not None and self._turns >= turns)


class Compacted(ContextPolicy):
    """The whole history up to a summary; from then on the goal, the newest summary, the last turns before it, and what came
    after. For tasks that are `Compacting`."""

    keep: CountOrZero = 2
    """Turns before a summary that stay."""

    def render(self, chat: PromptPieces, past: Past) -> list[int]:
        summaries = [k for k, action in enumerate(past.actions) if action == SUMMARY]
        if not summaries:
            return FullHistory().render(chat, past)
        newest, before = summaries[-1], summaries[-2] if len(summaries) > 1 else -1
        turns = [newest, *range(max(before + 1, newest - self.keep), newest), *range(newest + 1, len(past.sampled))]
        seen = [*(past.observations[k] for k in turns), past.observations[-1]]
        return FullHistory().render(chat, replace(past, observations=seen, sampled=[past.sampled[k] for k in turns]))


class AcrossSegments(Credit):
    """Generalised advantage estimates within each segment of an episode, which a summary ends and which earns what the episode
    earned, less for a segment the more is still to come after it:

        A_t = (discount lam)^m GAE_t(discount, lam),  lam = 1 - 1 / (spread n)

    in a segment of n sampled tokens with m in later segments. A step is a token. A summary is the last turn of the segment that
    it sums up; it is trained as that segment's actions are.
    """

    spread: Annotated[float, Field(ge=1)] = 1.5
    """alpha: over how many lengths of its segment a reward is spread."""
    discount: Share = 1.0
    """Weight of what is one token later."""
    values: Literal["none", "critic"] = "critic"
    """Value before each turn: 0, or a critic's estimate."""
    summaries: bool = True
    """Whether summaries are trained, or the other turns alone."""

    @property
    def estimates(self) -> frozenset[str]:
        return GAE(values=self.values).estimates

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        return [[a for segment in self._credited(t) for a in segment] for t in played]

    def targets(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """What was earned from each turn to the end of its segment, discounted token by token."""
        earned = GAE(over="tokens", discount=self.discount)
        return [
            [] if t.stop.failed else [target for turns in earned.targets(segments(t)) for target in turns]
            for t in trajectories
        ]

    def _credited(self, trajectory: Trajectory) -> list[list[Advantage]]:
        """Of each segment the advantages of its turns."""
        found, later = [], 0
        for segment in reversed(segments(trajectory)):
            tokens = sum(len(turn.sampled_ids) for turn in segment.turns)
            lam = 1 - 1 / (self.spread * max(tokens, 1))
            (own,) = GAE(over="tokens", discount=self.discount, lam=lam, values=self.values).advantages([segment])
            weight = (self.discount * lam) ** later
            found.append([self._weighed(turn, of, weight) for turn, of in zip(segment.turns, own, strict=True)])
            later += tokens
        return found[::-1]

    def _weighed(self, turn: Turn, advantages: Any, weight: float) -> Advantage:
        if turn.action == SUMMARY and not self.summaries:
            return None
        return [weight * a for a in advantages]


def segments(trajectory: Trajectory) -> list[Trajectory]:
    """An episode, cut after each of its summaries. Each part ends with the episode's reward, and all but the last one as if
    the episode had ended there."""
    ends = [k + 1 for k, turn in enumerate(trajectory.turns[:-1]) if turn.action == SUMMARY]
    parts = [trajectory.turns[a:b] for a, b in pairwise([0, *ends, trajectory.length])]
    stops = [StopReason.ANSWERED] * len(ends) + [trajectory.stop]
    return [replace(trajectory, turns=turns, stop=stop) for turns, stop in zip(parts, stops, strict=True)]

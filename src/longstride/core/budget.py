"""What an episode may spend, and why it stopped.

What always holds: whatever ran out *is* the stop reason; every stop reason is exactly one of *terminated* (the task
ended: a value estimate does not bootstrap), *truncated* (a budget ended it: it does) or *failed* (no episode came of
it: never a sample, never a reward of zero).
"""

from enum import StrEnum

from longstride.core.component import Component
from longstride.core.numbers import Count, Limit, Seconds


class StopReason(StrEnum):
    """Why an episode stopped."""

    ANSWERED = "answered"
    ENV_ENDED = "env_ended"
    PARSE_FAILURE = "parse_failure"
    """The environment ended the task because the turn could not be parsed."""
    ENV_TRUNCATED = "env_truncated"
    """The environment cut the episode short by a limit of its own."""
    MARK = "mark"
    """The plan asked to pause where a mark was sampled (see `rollout.episode.Plan.marks`)."""
    TURNS = "turns"
    TOKENS = "tokens"
    TOOL_CALLS = "tool_calls"
    SECONDS = "seconds"
    CONTEXT = "context"
    INFRA_FAILURE = "infra_failure"
    UNPLAYED = "unplayed"
    """Its trial was over before it began."""

    @property
    def terminated(self) -> bool:
        """The task itself ended: no bootstrap."""
        return self in (StopReason.ANSWERED, StopReason.ENV_ENDED, StopReason.PARSE_FAILURE)

    @property
    def failed(self) -> bool:
        """No episode came of it, by trouble of infrastructure or because its trial was over: it is counted and
        reported, and is never a sample."""
        return self in (StopReason.INFRA_FAILURE, StopReason.UNPLAYED)

    @property
    def truncated(self) -> bool:
        """A limit, or a mark, ended the episode, and the task might have gone on: bootstrap."""
        return not (self.terminated or self.failed)


class Budget(Component):
    """Limits of one episode; `None` is no limit. `curriculum.BudgetSchedule` gives one for each iteration and task."""

    turns: Count = 30
    """Environment steps: the horizon h of TTI. An answer is a step."""
    tokens: Limit = None
    """Sampled tokens over the whole episode, what it began with included."""
    turn_tokens: Count = 64
    """Sampled tokens in one turn, what it began with included; a turn that is cut is parsed as it stands."""
    thought_tokens: Limit = None
    """Sampled tokens of a turn up to `</think>`, for a reasoning model. A thought that is cut is ended for the policy,
    which goes on; it is read and not trained."""
    tool_calls: Limit = None
    """Actions other than an answer."""
    seconds: Seconds | None = None
    """Wall clock of the episode."""

    def exhausted(self, turns: int, tokens: int, tool_calls: int, seconds: float) -> StopReason | None:
        """The budget that ran out first (in the order turns, tokens, tool calls, seconds), or None."""
        if turns >= self.turns:
            return StopReason.TURNS
        if self.tokens is not None and tokens >= self.tokens:
            return StopReason.TOKENS
        if self.tool_calls is not None and tool_calls >= self.tool_calls:
            return StopReason.TOOL_CALLS
        if self.seconds is not None and seconds >= self.seconds:
            return StopReason.SECONDS
        return None

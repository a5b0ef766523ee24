"""What an episode may spend, and why it stopped.

What always holds: whatever ran out *is* the stop reason; every stop reason is exactly one of *terminated* (the task
ended: a value estimate does not bootstrap), *truncated* (a budget ended it: it does) or *failed* (infrastructure:
never a sample, never a reward of zero).
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from longstride.core.component import Component

Limit = Annotated[int | None, Field(ge=1)]


class StopReason(StrEnum):
    """Why an episode stopped."""

    ANSWERED = "answered"
    ENV_ENDED = "env_ended"
    TURNS = "turns"
    TOKENS = "tokens"
    TOOL_CALLS = "tool_calls"
    SECONDS = "seconds"
    CONTEXT = "context"
    PARSE_FAILURE = "parse_failure"
    INFRA_FAILURE = "infra_failure"

    @property
    def terminated(self) -> bool:
        """The task itself ended: no bootstrap."""
        return self in (StopReason.ANSWERED, StopReason.ENV_ENDED, StopReason.PARSE_FAILURE)

    @property
    def failed(self) -> bool:
        """Infrastructure trouble: the episode is counted and reported, and is never a sample."""
        return self is StopReason.INFRA_FAILURE

    @property
    def truncated(self) -> bool:
        """A budget ended the episode: bootstrap."""
        return not (self.terminated or self.failed)


class Budget(Component):
    """Limits of one episode; `None` is no limit. A horizon schedule returns one of these per iteration and task."""

    turns: Annotated[int, Field(ge=1)] = 30
    """Environment steps: the horizon h of TTI. An answer is a step."""
    tokens: Limit = None
    """Sampled tokens over the whole episode, what it began with included."""
    turn_tokens: Annotated[int, Field(ge=1)] = 64
    """Sampled tokens in one turn; a turn that is cut is parsed as it stands."""
    tool_calls: Limit = None
    """Actions other than an answer."""
    seconds: Annotated[float | None, Field(gt=0)] = None
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

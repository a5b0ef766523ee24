"""Context policies: how an episode's history becomes the prompt of its next turn.

What always holds: a prompt is the chat format's own pieces and the sampled ids, put one behind the other; nothing is
decoded or encoded again here (an observation's ids come from the chat format's cache), so a prompt costs one pass
over its length. Unless the chat format strips thoughts, under a `Transcript` every sampled id stands in every later
prompt, and under `FullHistory` a prompt continues the one before it and what was sampled.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from longstride.core.component import Component
from longstride.core.numbers import Count

if TYPE_CHECKING:  # the tokenizers behind it take seconds to import
    from longstride.models.chat import ChatFormat


class ContextPolicy(Component):
    """Family: what the policy still sees of its past."""

    @abstractmethod
    def render(
        self, chat: "ChatFormat", goal: str, observations: Sequence[str], sampled: Sequence[list[int]]
    ) -> list[int]:
        """The prompt of the next turn.

        Args:
            chat: makes ids of the goal and of observations.
            goal: the task's goal.
            observations: texts seen so far, oldest first: one more than `sampled`.
            sampled: ids sampled in each past turn; `chat.spoken` says how they stand in a prompt.
        """


class LatestObservation(ContextPolicy):
    """The goal and the newest observation: no earlier turn, and no older observation. For environments whose
    observation says all that is to be known of the past (Reasoning Cache)."""

    def render(
        self, chat: "ChatFormat", goal: str, observations: Sequence[str], sampled: Sequence[list[int]]
    ) -> list[int]:
        return chat.head(goal) + chat.observation(observations[-1], first=True)


class Transcript(ContextPolicy):
    """Family: head, observation 1, sampled 1, observation 2, ..."""

    @abstractmethod
    def seen(self, observations: Sequence[str]) -> Sequence[str]:
        """The observations (oldest first) as they stand in the next prompt: as many as came."""

    def render(
        self, chat: "ChatFormat", goal: str, observations: Sequence[str], sampled: Sequence[list[int]]
    ) -> list[int]:
        shown = self.seen(observations)
        prompt = [*chat.head(goal)]
        for k, (text, ids) in enumerate(zip(shown[:-1], sampled, strict=True)):
            prompt += chat.observation(text, first=k == 0, past=True) + chat.spoken(ids)
        return prompt + chat.observation(shown[-1], first=not sampled)


class FullHistory(Transcript):
    """Every page stays: the prompt only grows."""

    def seen(self, observations: Sequence[str]) -> Sequence[str]:
        return observations


class RecentObservations(Transcript):
    """Every action stays, and the newest pages; each older page becomes a placeholder (TTI, released code;
    WebAgent-R1)."""

    keep: Count = 1
    """Newest observations that are kept whole."""
    placeholder: str = "omitted"
    """What stands where an older page stood."""

    def seen(self, observations: Sequence[str]) -> Sequence[str]:
        old = max(0, len(observations) - self.keep)
        return [self.placeholder] * old + list(observations[old:])


class RecentTurns(ContextPolicy):
    """The goal and the first observation, the newest turns and what followed them: a window that slides, so that a late
    turn reads no more than an early one (RISE, arXiv 2407.18219)."""

    keep: Count = 1
    """Earlier turns that are read."""

    def render(
        self, chat: "ChatFormat", goal: str, observations: Sequence[str], sampled: Sequence[list[int]]
    ) -> list[int]:
        left_out = max(0, len(sampled) - self.keep)
        seen = [observations[0], *observations[left_out + 1 :]]
        return FullHistory().render(chat, goal, seen, sampled[left_out:])

"""Context policies: how an agent's past becomes the prompt of its next turn.

What always holds: a prompt is the chat format's own pieces and the sampled ids, put one behind the other; nothing is
decoded or encoded again here (an observation's ids come from the chat format's cache), so a prompt costs one pass
over its length. Unless the chat format strips thoughts, under a `Transcript` every sampled id stands in every later
prompt, and under `FullHistory` a prompt continues the one before it and what was sampled; under a `TrialHistory` of it
also one of an earlier episode.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from string import Formatter
from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import AfterValidator, Field, field_validator

from longstride.core.budget import Budget
from longstride.core.component import Component, parts_of
from longstride.core.content import Content, chunks_of, joined, text_in, with_lines
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Limit
from longstride.core.trajectory import Trajectory
from longstride.envs.requests import ChatRequest


class PromptPieces(Protocol):
    """What makes the pieces of a prompt: a chat template (`models.chat.ChatFormat`), or the messages of a chat API
    (`rollout.chat_player.Messages`)."""

    def head(self, goal: str) -> list[int]:
        """All that stands before the first observation."""
        ...

    def observation(self, content: Content, first: bool = False, past: bool = False) -> list[int]:
        """An observation with what stands before and after it, up to the place where the agent speaks."""
        ...

    def spoken(self, ids: list[int]) -> list[int]:
        """The ids of an earlier turn as they stand in later prompts."""
        ...

    def encode(self, text: str) -> list[int]:
        """The ids of plain text."""
        ...

    def conversation(self, roles: Sequence[str], contents: Sequence[list[int]], later: bool) -> list[int]:
        """Messages of a conversation, up to the place where the agent speaks.

        Args:
            roles: system, user, assistant or tool.
            contents: the ids of each; an assistant's are `spoken`.
            later: whether they stand behind a turn of the agent; if not, they begin the conversation.
        """
        ...


class SpentBudget(NamedTuple):
    """What of a budget was spent."""

    turns: int = 0
    tokens: int = 0
    tool_calls: int = 0


@dataclass(frozen=True, slots=True)
class Past:
    """What an agent has been through, before its next turn."""

    goal: str
    """The task's goal."""
    observations: Sequence[Content]
    """All that was seen in this episode, oldest first: one more than `sampled`."""
    sampled: Sequence[list[int]] = ()
    """Ids sampled in each past turn of it; `PromptPieces.spoken` says how they stand in a prompt."""
    rewards: Sequence[float] = ()
    """What the environment gave in each past turn of it."""
    earlier: Sequence[Trajectory] = ()
    """The earlier episodes of its trial, oldest first, with their rewards and outcomes; none of them failed."""
    budget: Budget | None = None
    """What the episode may take; None where nobody says."""
    spent: Sequence[SpentBudget] = ()
    """What of it was spent when each observation came."""
    requests: Sequence[ChatRequest | None] = ()
    """What a program asked with each observation; None where none did."""
    actions: Sequence[str | None] = ()
    """What each past turn of it did, in canonical form; None where that could not be parsed."""


class ContextPolicy(Component):
    """Family: what the policy still sees of its past."""

    @abstractmethod
    def render(self, chat: PromptPieces, past: Past) -> list[int]:
        """The prompt of the next turn; `chat` makes ids of goal and observations."""

    def parts(self, chat: PromptPieces, past: Past) -> list[list[int]] | None:
        """The prompt of the next turn as what was read, said, read and so on, where each prompt continues the one
        before it and what was said; None where prompts are made anew."""
        return None


class LatestObservation(ContextPolicy):
    """The goal and the newest observation: no earlier turn, and no older observation. For environments whose
    observation says all that is to be known of the past (Reasoning Cache)."""

    def render(self, chat: PromptPieces, past: Past) -> list[int]:
        _check_nobody_asks(past)
        return chat.head(past.goal) + chat.observation(past.observations[-1], first=True)


class Transcript(ContextPolicy):
    """Family: head, observation 1, sampled 1, observation 2, ..."""

    @abstractmethod
    def seen(self, observations: Sequence[Content]) -> Sequence[Content]:
        """The observations (oldest first) as they stand in the next prompt: as many as came."""

    def render(self, chat: PromptPieces, past: Past) -> list[int]:
        return [i for part in self._parts(chat, past) for i in part]

    def _parts(self, chat: PromptPieces, past: Past) -> list[list[int]]:
        _check_nobody_asks(past)
        shown = self.seen(past.observations)
        parts = []
        for k, (content, ids) in enumerate(zip(shown[:-1], past.sampled, strict=True)):
            parts += [chat.observation(content, first=k == 0, past=True), chat.spoken(ids)]
        parts.append(chat.observation(shown[-1], first=not past.sampled))
        return [chat.head(past.goal) + parts[0], *parts[1:]]


class FullHistory(Transcript):
    """Every page stays: the prompt only grows."""

    def seen(self, observations: Sequence[Content]) -> Sequence[Content]:
        return observations

    def parts(self, chat: PromptPieces, past: Past) -> list[list[int]] | None:
        return self._parts(chat, past)


class RecentObservations(Transcript):
    """Every action stays, and the newest pages; each older page becomes a placeholder (TTI, released code;
    WebAgent-R1)."""

    keep: Count = 1
    """Newest observations that are kept whole."""
    placeholder: str = "omitted"
    """What stands where an older page stood."""

    def seen(self, observations: Sequence[Content]) -> Sequence[Content]:
        old = max(0, len(observations) - self.keep)
        return [self.placeholder] * old + list(observations[old:])


class RecentTurns(ContextPolicy):
    """The goal and the first observation, the newest turns and what followed them: a window that slides, so that a late
    turn reads no more than an early one (RISE, arXiv 2407.18219)."""

    keep: Count = 1
    """Earlier turns that are read."""

    def render(self, chat: PromptPieces, past: Past) -> list[int]:
        left_out = max(0, len(past.sampled) - self.keep)
        seen = [past.observations[0], *past.observations[left_out + 1 :]]
        return FullHistory().render(chat, replace(past, observations=seen, sampled=past.sampled[left_out:]))


class AsRequested(ContextPolicy):
    """The messages of the program that asks (`tasks.type = chat_gateway`): what it says is what is read. A request that
    continues what was said continues its ids; any other prompt is made anew, with the sampled ids of each message that
    the policy said."""

    def render(self, chat: PromptPieces, past: Past) -> list[int]:
        asked, n = list(past.requests), len(past.observations) - 1
        parts: list[list[int]] = []
        while True:
            request = asked[n] if n < len(asked) else None
            if request is None:
                raise ConfigError(
                    "context.type is as_requested, which reads what a program asks, and no program plays here: it goes "
                    "with tasks.type=chat_gateway"
                )
            roles = [*(message.role for message in request.before), request.role]
            contents = [_ids_of(chat, m.role, m.content, m.turn, past) for m in request.before]
            contents.append(_ids_of(chat, request.role, past.observations[n], None, past))
            parts.append(chat.conversation(roles, contents, later=request.follows is not None))
            if request.follows is None:
                return [i for part in reversed(parts) for i in part]
            n = request.follows
            parts.append(chat.spoken(past.sampled[n]))


def _check_nobody_asks(past: Past) -> None:
    """Refuses what a program asks: without its messages a prompt would have neither its system prompt nor its tools."""
    if past.requests and past.requests[-1] is not None:
        raise ConfigError(
            "a program asks (tasks.type=chat_gateway), and this context does not read what: set "
            "context.type=as_requested, or context.within.type=as_requested where context has another one within"
        )


def _ids_of(chat: PromptPieces, role: str, content: Content, turn: int | None, past: Past) -> list[int]:
    """The ids of a message: as they were sampled, where the policy said it."""
    if turn is not None:
        return chat.spoken(past.sampled[turn])
    ids = chat.encode(text_in(content))
    return chat.spoken(ids) if role == "assistant" else ids


def checked_form(value: str, names: frozenset[str]) -> str:
    """A text with numbers in braces, checked."""
    try:
        value.format(**dict.fromkeys(names, 1))
    except (ValueError, KeyError, IndexError, AttributeError) as e:
        known = ", ".join(f"{{{name}}}" for name in sorted(names))
        raise ValueError(f"a form may name {known}; a brace is written twice") from e
    return value


class TrialHistory(ContextPolicy):
    """A trial as one long episode: what its earlier episodes saw, did and earned stands before this one, and another
    context policy says what of all that is read (in-context reinforcement learning: RL^2, arXiv 1611.02779; LaMer,
    arXiv 2512.16848). In a trial of one episode it is that policy, with rewards."""

    within: ContextPolicy = FullHistory()
    """What is read of the whole."""
    rewards: bool = True
    """Whether what a turn earned is said after it, and what an episode earned at its end."""
    turn: Annotated[str, AfterValidator(partial(checked_form, names=frozenset({"reward"})))] = "reward: {reward:g}"
    """How it is said of a turn. A small model reads fewer tokens where this is `{reward:g}`."""
    outcome: Annotated[str, AfterValidator(partial(checked_form, names=frozenset({"episode", "done", "reward"})))] = (
        "episode {episode}: {done}, reward {reward:g}"
    )
    """How it is said of an episode, with its number, `done` or `not done`, and the reward."""
    episodes: Limit = None
    """Newest earlier episodes that are read; all if left out."""

    @field_validator("within")
    @classmethod
    def _of_no_budget(cls, within: ContextPolicy) -> ContextPolicy:
        if any(isinstance(part, BudgetInView) for part in (within, *(part for _, part in parts_of(within)))):
            raise ValueError("a budget is of one episode, and this reads a whole trial: put budget_in_view around it")
        return within

    def render(self, chat: PromptPieces, past: Past) -> list[int]:
        return self.within.render(chat, self._whole(past))

    def parts(self, chat: PromptPieces, past: Past) -> list[list[int]] | None:
        return None if self.episodes else self.within.parts(chat, self._whole(past))

    def _whole(self, past: Past) -> Past:
        """The trial as one episode."""
        seen: list[Content] = []
        sampled: list[list[int]] = []
        before: Content = ""
        for t in past.earlier[-self.episodes :] if self.episodes else past.earlier:
            *told, last = self._told([*(turn.observation for turn in t.turns), t.final], [u.reward for u in t.turns])
            seen += [_after(before, told[0]), *told[1:]]
            sampled += [turn.ids for turn in t.turns]
            before = with_lines(last, self._outcome(t))
        told = self._told(past.observations, past.rewards)
        seen += [_after(before, told[0]), *told[1:]]
        return replace(past, observations=seen, sampled=[*sampled, *past.sampled], earlier=())

    def _told(self, observations: Sequence[Content], rewards: Sequence[float]) -> list[Content]:
        """Observations, each but the first with what was earned before it."""
        lines = [self.turn.format(reward=reward) if self.rewards else "" for reward in rewards]
        return [with_lines(o, *lines[max(0, k - 1) : k]) for k, o in enumerate(observations)]

    def _outcome(self, t: Trajectory) -> str:
        if not self.rewards:
            return f"episode {t.place + 1}: over"
        done = "done" if t.success else "not done"
        return self.outcome.format(episode=t.place + 1, done=done, reward=t.reward)


class BudgetInView(ContextPolicy):
    """Another context policy that reads, at the end of every observation, what was left of the budget when it came: `7
    of 24 turns left` (the Budget Tracker of arXiv 2511.17006; in seconds, Timely Machine, arXiv 2601.16486).

    A line stays what it was when its observation came, so a prompt still continues the one before it. Of a limit that
    does not bind nothing is said. A policy that sees its budget acts by it, so what an episode came to under one limit
    says nothing of another.
    """

    within: ContextPolicy = RecentObservations()
    """What is read of the past."""
    of: Annotated[tuple[Literal["turns", "tokens", "tool_calls"], ...], Field(min_length=1)] = ("turns",)
    """Which limits are in view: turns, sampled tokens, actions other than an answer."""
    words: str = "{left} of {limit} {what} left"
    """How it is said, with the numbers `left` and `limit` and the name of `what` is limited. A small model reads only
    words that it was shown: `{left} of {limit}` are known to those that ship, up to 99."""

    @field_validator("words")
    @classmethod
    def _says_what_is_left(cls, value: str) -> str:
        try:
            parts = list(Formatter().parse(value))
            known = all(name in (None, "left", "limit", "what") and not (form or way) for _, name, form, way in parts)
        except ValueError:
            known = False
        if not known or "{left}" not in value:
            raise ValueError("words say {left}, and may say {limit} and {what}; a brace is written twice")
        return value

    def render(self, chat: PromptPieces, past: Past) -> list[int]:
        if past.budget is None:
            return self.within.render(chat, past)
        pairs = zip(past.observations, past.spent, strict=True)
        seen = [with_lines(content, *self._lines(past.budget, spent)) for content, spent in pairs]
        return self.within.render(chat, replace(past, observations=seen))

    def _lines(self, budget: Budget, spent: SpentBudget) -> list[str]:
        limits = ((name, getattr(budget, name)) for name in self.of)
        return [
            self.words.format(left=max(0, limit - getattr(spent, name)), limit=limit, what=name.replace("_", " "))
            for name, limit in limits
            if limit is not None
        ]


def _after(before: Content, content: Content) -> Content:
    """Content behind other content, on a line of its own."""
    return joined([*chunks_of(before), "\n", *chunks_of(content)]) if before else content

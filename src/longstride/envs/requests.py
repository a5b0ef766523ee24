"""What a program asks of a model: the messages of a conversation, as an environment hands them to a context policy.

What always holds: a message that the model said itself stands here by the number of its turn, so that its ids are those
that were sampled.
"""

from dataclasses import dataclass
from typing import Literal

from longstride.core.content import Content
from longstride.envs.tools import Tool

ChatRole = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message before the newest one."""

    role: ChatRole
    content: Content
    turn: int | None = None
    """The turn of the episode, from 0, that said it; None where somebody else did."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request; its newest message is the observation that it comes with."""

    role: ChatRole = "user"
    """Who says the newest message."""
    before: tuple[ChatMessage, ...] = ()
    """Messages before it that are new: all of them, or those after the turn that it follows."""
    follows: int | None = None
    """The turn, from 0, that it continues: its prompt is that turn's, what was sampled, and the new messages. None
    where a prompt is made anew."""
    tools: tuple[Tool, ...] = ()
    """What the model's chat template presents to it."""
    most: int | None = None
    """Tokens that it asks for at most."""
    fork: str = ""
    """Why it does not continue the turn before: `again` (it was asked before), `rewritten` (what was said before is no
    longer there, or otherwise), `separate` (a conversation beside the others); empty where it continues one."""

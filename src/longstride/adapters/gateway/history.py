"""Which of a program's requests continue what was said, and which open a branch.

What always holds: a request whose messages begin with those of an earlier one and what was answered continues that
turn, and only its new messages are new; every other one is a conversation made anew, in which what the model said
itself is known again. Either way it has a name where it does not simply go on (`envs.requests.ChatRequest.fork`).
"""

import hashlib
from collections.abc import Sequence

from longstride.adapters.gateway.wire import WireMessage, WireRequest
from longstride.envs.requests import ChatMessage, ChatRequest
from longstride.envs.tools import Tool


class Conversations:
    """What was asked and answered in one episode."""

    def __init__(self) -> None:
        self._ends: dict[bytes, int] = {}
        """The turn after which a conversation stands, by its messages and the answer."""
        self._asked: set[bytes] = set()
        """Requests, by their messages."""
        self._begun: set[bytes] = set()
        """How requests begin: their first messages up to the first that is no system's."""
        self._turns: dict[tuple[object, ...], int] = {}
        """The turn that said a message."""
        self._last: int | None = None

    def heard(
        self, asked: WireRequest, messages: Sequence[WireMessage], presented: tuple[Tool, ...], shown: str
    ) -> ChatRequest:
        """How a request stands to those before it.

        Args:
            asked: what came.
            messages: its messages as they are read.
            presented: the tools that the model's template presents.
            shown: whatever else a prompt begins with; a conversation under another one is another.
        """
        keys = self._keys(asked.messages, shown)
        k = next((k for k in range(len(keys) - 1, 0, -1) if keys[k] in self._ends), 0)
        follows = self._ends[keys[k]] if k else None
        first = self._first(keys, asked.messages)
        fork = ""
        if keys[-1] in self._asked:
            fork = "again"
        elif follows is None and self._asked:
            fork = "rewritten" if first in self._begun else "separate"
        self._asked.add(keys[-1])
        self._begun.add(first)
        before = tuple(
            ChatMessage(m.role, m.text, self._turns.get(told.key) if m.role == "assistant" else None)
            for m, told in zip(messages[k:-1], asked.messages[k:-1], strict=True)
        )
        return ChatRequest(messages[-1].role, before, follows, presented, asked.most, fork)

    def answered(self, asked: WireRequest, said: WireMessage, turn: int, shown: str) -> None:
        """Takes down what a request was answered, and by which turn."""
        self._ends[self._keys((*asked.messages, said), shown)[-1]] = turn
        self._turns[said.key] = turn

    def _keys(self, messages: Sequence[WireMessage], shown: str) -> list[bytes]:
        """A name for each beginning of a conversation: of no message, of one, and so on."""
        keys = [hashlib.sha256(shown.encode()).digest()]
        for message in messages:
            keys.append(hashlib.sha256(keys[-1] + repr(message.key).encode()).digest())
        return keys

    def _first(self, keys: Sequence[bytes], messages: Sequence[WireMessage]) -> bytes:
        return keys[next((k for k, m in enumerate(messages, 1) if m.role != "system"), len(messages))]

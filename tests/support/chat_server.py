"""A server on loopback that speaks the chat-completions protocol, counts tokens, and is a model that a test writes."""

import json
from collections.abc import Callable
from typing import Any

from judge_server import Server, response
from starlette.requests import Request

from longstride.models.api import ChatAPI

Body = dict[str, Any]


def text_of(body: Body) -> str:
    """The content of the newest message."""
    return body["messages"][-1]["content"]


def called(name: str, **arguments: Any) -> dict[str, Any]:
    """The message of a call."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": "its own", "type": "function", "function": function}]}


class ChatServer(Server):
    """Does what `script` says first, request by request; then its `model` answers: with a text, or a message."""

    def reset(self) -> None:
        super().reset()
        self.always: Any = None
        self.model: Callable[[Body], str | dict[str, Any]] = lambda body: "fine"
        self.finish, self.usage = "stop", True

    async def _answer(self, request: Request) -> Any:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(request.headers)
        odd = self.script.pop(0) if self.script else self.always
        return (odd or response(self.completion(body)))(request)

    def completion(self, body: Body) -> dict[str, Any]:
        """A token is a word."""
        said = self.model(body)
        message = {"role": "assistant"} | ({"content": said} if isinstance(said, str) else said)
        read, sampled = (len(json.dumps(m).split()) for m in (body["messages"], message))
        usage = {"prompt_tokens": read, "completion_tokens": sampled, "prompt_tokens_details": {"cached_tokens": 1}}
        choice = {"message": message, "finish_reason": self.finish}
        return {"choices": [choice]} | ({"usage": usage} if self.usage else {})

    def api(self, **settings: Any) -> ChatAPI:
        """A model behind it."""
        return ChatAPI(**({"url": self.url, "name": "m", "timeout": 5.0} | settings))

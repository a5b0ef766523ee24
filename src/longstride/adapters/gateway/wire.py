"""What programs say to a chat API and are answered, in the three forms that they speak: OpenAI's chat completions,
OpenAI's responses, Anthropic's messages. All of them are the same conversation.

What always holds: what a program sends is checked and bounded before anything looks at it; what cannot be done as it
was asked is refused in one sentence, and never left out in silence. Answers have words, calls of tools, why they ended,
and counts of tokens; streams are made of an answer that is whole.

The policy's own sampling decides how tokens are drawn, or they could not be trained: `temperature`, `top_p`, `seed`,
`tool_choice` and such are read and have no effect.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from longstride.core.errors import short
from longstride.core.foreign import UnreadableError, read_json
from longstride.envs.requests import ChatRole
from longstride.envs.tools import Tool

MAX_MESSAGES = 10_000
"""Of one request."""
MAX_OFFERED = 256
"""Tools of one request."""
CHUNK = 32
"""Characters of a piece of a stream."""
ROLES: dict[str, ChatRole] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


class RefusedRequest(Exception):
    """What is not done, as the program is told: a status, a type and a sentence."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


def wrong(message: str) -> RefusedRequest:
    """The refusal of a request that is not as the protocol has it, or that asks for what there is not."""
    return RefusedRequest(400, "invalid_request_error", message)


class ToolUse(NamedTuple):
    """A call of a tool, as it is said."""

    name: str
    arguments: str
    """JSON in one form, so that equal calls are equal; what is no JSON as it came."""
    id: str = ""


@dataclass(frozen=True, slots=True)
class WireMessage:
    """A message."""

    role: ChatRole
    text: str
    calls: tuple[ToolUse, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes it the same as another: who says what, whatever the calls' ids."""
        return self.role, self.text.strip(), tuple((call.name, call.arguments) for call in self.calls)


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request, whatever form it came in."""

    messages: tuple[WireMessage, ...]
    tools: tuple[Tool, ...] = ()
    most: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    stream: bool = False
    counted: bool = False
    """Whether a stream ends with the counts of tokens."""
    before: str = ""
    """Id of the response that it goes on from."""


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """What the policy said."""

    id: str
    text: str
    calls: tuple[ToolUse, ...] = ()
    cut: bool = False
    """Whether a limit of tokens cut it."""
    read: int = 0
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()

    @property
    def said(self) -> WireMessage:
        """As a message."""
        return WireMessage("assistant", self.text, self.calls)


class WireForm(ABC):
    """One of the forms."""

    @abstractmethod
    def read(self, body: Mapping[str, Any]) -> WireRequest:
        """A request. Raises: RefusedRequest."""

    @abstractmethod
    def answer(self, answer: WireAnswer, asked: WireRequest) -> dict[str, Any]:
        """A whole answer."""

    @abstractmethod
    def stream(self, answer: WireAnswer, asked: WireRequest) -> Iterator[tuple[str, Any]]:
        """The events of a stream: name (empty where the form has none) and data."""

    def refusal(self, refused: RefusedRequest) -> dict[str, Any]:
        """What is said instead."""
        return {"error": {"message": refused.message, "type": refused.kind, "code": refused.kind, "param": None}}


class ChatCompletions(WireForm):
    """`POST /v1/chat/completions`."""

    def read(self, body: Mapping[str, Any]) -> WireRequest:
        if (n := body.get("n")) not in (None, 1):
            raise wrong(f"n is {short(n)}: every request is a turn, so n=1 is answered; ask several times")
        _refuse_formats(body.get("response_format"))
        if body.get("top_logprobs"):
            raise wrong("top_logprobs: log-probabilities are those of the sampled tokens alone; leave it out")
        options = body.get("stream_options")
        return WireRequest(
            tuple(self._message(m, k) for k, m in enumerate(_list(body, "messages", MAX_MESSAGES))),
            tuple(_tool(t.get("function") if isinstance(t, dict) else None) for t in _offered(body)),
            _count(body, "max_completion_tokens") or _count(body, "max_tokens"),
            _stops(body.get("stop")),
            body.get("logprobs") is True,
            body.get("stream") is True,
            isinstance(options, dict) and options.get("include_usage") is True,
        )

    def _message(self, message: Any, k: int) -> WireMessage:
        role, made = _role(message, k), message.get("tool_calls") or []
        if not isinstance(made, list):
            raise wrong(f"messages[{k}].tool_calls: expected a list of calls, got {short(made)}")
        calls = tuple(
            _call(call.get("function"), call.get("id"), k) if isinstance(call, dict) else _call(None, "", k)
            for call in made
        )
        return WireMessage(role, _text(message.get("content"), f"messages[{k}].content"), calls)

    def answer(self, answer: WireAnswer, asked: WireRequest) -> dict[str, Any]:
        message = {
            "role": "assistant",
            "content": answer.text or (None if answer.calls else ""),
            "refusal": None,
        } | self._calls(answer)
        choice = {"index": 0, "message": message, "finish_reason": self._finish(answer), "logprobs": None}
        if asked.logprobs:
            choice["logprobs"] = self._logprobs(answer)
        return self._frame(answer, "chat.completion") | {"choices": [choice], "usage": self._usage(answer)}

    def stream(self, answer: WireAnswer, asked: WireRequest) -> Iterator[tuple[str, Any]]:
        frame = self._frame(answer, "chat.completion.chunk")

        def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[str, Any]:
            return "", frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

        yield chunk({"role": "assistant", "content": ""})
        for piece in _pieces(answer.text):
            yield chunk({"content": piece})
        for k, call in enumerate(self._calls(answer).get("tool_calls", ())):
            yield chunk({"tool_calls": [{"index": k} | call]})
        yield chunk({}, self._finish(answer))
        if asked.counted:
            yield "", frame | {"choices": [], "usage": self._usage(answer)}
        yield "", "[DONE]"

    def _frame(self, answer: WireAnswer, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{answer.id}", "object": kind, "created": int(time.time()), "model": MODEL}

    def _calls(self, answer: WireAnswer) -> dict[str, Any]:
        made = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in answer.calls
        ]
        return {"tool_calls": made} if made else {}

    def _finish(self, answer: WireAnswer) -> str:
        return "length" if answer.cut else "tool_calls" if answer.calls else "stop"

    def _usage(self, answer: WireAnswer) -> dict[str, int]:
        sampled = len(answer.ids)
        return {"prompt_tokens": answer.read, "completion_tokens": sampled, "total_tokens": answer.read + sampled}

    def _logprobs(self, answer: WireAnswer) -> dict[str, Any]:
        """Of the sampled tokens, each named by its id, as vLLM does where it is asked for ids."""
        pairs = zip(answer.ids, answer.logprobs, strict=True)
        found = [{"token": f"token_id:{i}", "logprob": p, "bytes": None, "top_logprobs": []} for i, p in pairs]
        return {"content": found, "refusal": None}


class Responses(WireForm):
    """`POST /v1/responses`."""

    def read(self, body: Mapping[str, Any]) -> WireRequest:
        given, text = body.get("input"), body.get("text")
        _refuse_formats(text.get("format") if isinstance(text, dict) else None)
        items = [{"role": "user", "content": given}] if isinstance(given, str) else _list(body, "input", MAX_MESSAGES)
        told = [WireMessage("system", _text(body["instructions"], "instructions"))] if body.get("instructions") else []
        for k, item in enumerate(items):
            if (message := self._item(item, k)) is None:
                continue
            if told and told[-1].role == message.role == "assistant":  # one turn is several items
                text = "\n".join(filter(None, (told[-1].text, message.text)))
                told[-1] = WireMessage("assistant", text, told[-1].calls + message.calls)
            else:
                told.append(message)
        if not told:
            raise wrong("input: expected a message, or what a function put out")
        return WireRequest(
            tuple(told),
            tuple(_tool(t if isinstance(t, dict) and t.get("type") == "function" else None) for t in _offered(body)),
            _count(body, "max_output_tokens"),
            stream=body.get("stream") is True,
            before=str(body.get("previous_response_id") or ""),
        )

    def _item(self, item: Any, k: int) -> WireMessage | None:
        kind = item.get("type", "message") if isinstance(item, dict) else None
        if kind == "message":
            return WireMessage(_role(item, k), _text(item.get("content"), f"input[{k}].content"))
        if kind == "function_call":
            return WireMessage("assistant", "", (_call(item, item.get("call_id"), k),))
        if kind == "function_call_output":
            return WireMessage("tool", _text(item.get("output"), f"input[{k}].output"))
        if kind == "reasoning":
            return None
        raise wrong(f"input[{k}]: expected a message, a function_call or a function_call_output, got {short(item)}")

    def answer(self, answer: WireAnswer, asked: WireRequest) -> dict[str, Any]:
        return self._frame(answer, "incomplete" if answer.cut else "completed", self._items(answer))

    def stream(self, answer: WireAnswer, asked: WireRequest) -> Iterator[tuple[str, Any]]:
        events = self._events(answer, asked)
        for number, (kind, data) in enumerate(events):
            yield kind, {"type": kind, "sequence_number": number} | data

    def _events(self, answer: WireAnswer, asked: WireRequest) -> Iterator[tuple[str, dict[str, Any]]]:
        yield "response.created", {"response": self._frame(answer, "in_progress", [])}
        for k, item in enumerate(self._items(answer)):
            place: dict[str, Any] = {"output_index": k, "item_id": item["id"]}
            opened = item | ({"content": []} if item["type"] == "message" else {"arguments": ""})
            yield "response.output_item.added", {"output_index": k, "item": opened | {"status": "in_progress"}}
            if item["type"] == "message":
                part = item["content"][0]
                place |= {"content_index": 0}
                yield "response.content_part.added", place | {"part": part | {"text": ""}}
                for piece in _pieces(answer.text):
                    yield "response.output_text.delta", place | {"delta": piece, "logprobs": []}
                yield "response.output_text.done", place | {"text": answer.text, "logprobs": []}
                yield "response.content_part.done", place | {"part": part}
            else:
                yield "response.function_call_arguments.delta", place | {"delta": item["arguments"]}
                done = {"arguments": item["arguments"], "name": item["name"]}
                yield "response.function_call_arguments.done", place | done
            yield "response.output_item.done", {"output_index": k, "item": item}
        last = "response.incomplete" if answer.cut else "response.completed"
        yield last, {"response": self.answer(answer, asked)}

    def _items(self, answer: WireAnswer) -> list[dict[str, Any]]:
        part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        message = {"type": "message", "id": f"msg_{answer.id}", "role": "assistant", "content": [part]}
        calls = [
            {"type": "function_call", "id": f"fc_{c.id}", "call_id": c.id, "name": c.name, "arguments": c.arguments}
            for c in answer.calls
        ]
        made = [message, *calls] if answer.text or not calls else calls
        return [item | {"status": "completed"} for item in made]

    def _frame(self, answer: WireAnswer, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        sampled = len(answer.ids)
        usage = {
            "input_tokens": answer.read,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": sampled,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.read + sampled,
        }
        return {
            "id": f"resp_{answer.id}",
            "object": "response",
            "created_at": int(time.time()),
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": None,
            "metadata": {},
            "model": MODEL,
            "output": output,
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": None if status == "in_progress" else usage,
        }


class AnthropicMessages(WireForm):
    """`POST /v1/messages`."""

    def read(self, body: Mapping[str, Any]) -> WireRequest:
        system = _text(body.get("system"), "system")
        told = [WireMessage("system", system)] if system else []
        for k, message in enumerate(_list(body, "messages", MAX_MESSAGES)):
            told += self._messages(message, k)
        tools = ({**t, "parameters": t.get("input_schema")} if isinstance(t, dict) else None for t in _offered(body))
        most = _count(body, "max_tokens")
        return WireRequest(
            tuple(told),
            tuple(_tool(t) for t in tools),
            most,
            _stops(body.get("stop_sequences")),
            stream=body.get("stream") is True,
        )

    def _messages(self, message: Any, k: int) -> list[WireMessage]:
        """A message; answers of tools, which stand in a user's, are messages of their own."""
        role, content = _role(message, k), message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        told: list[WireMessage] = []
        texts: list[Any] = []
        calls: list[ToolUse] = []
        for block in blocks:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "tool_result":
                told.append(WireMessage("tool", _text(block.get("content"), f"messages[{k}].content")))
            elif kind == "tool_use":
                named = {"name": block.get("name"), "arguments": block.get("input")}
                calls.append(_call(named, block.get("id"), k))
            elif kind not in ("thinking", "redacted_thinking"):
                texts.append(block)
        text = _text(texts, f"messages[{k}].content")
        return [*told, WireMessage(role, text, tuple(calls))] if text or calls or not told else told

    def answer(self, answer: WireAnswer, asked: WireRequest) -> dict[str, Any]:
        return self._frame(answer, len(answer.ids)) | {
            "content": [block | more for block, more in self._blocks(answer)],
            "stop_reason": self._stop(answer),
        }

    def stream(self, answer: WireAnswer, asked: WireRequest) -> Iterator[tuple[str, Any]]:
        for kind, data in self._events(answer):
            yield kind, {"type": kind} | data

    def _events(self, answer: WireAnswer) -> Iterator[tuple[str, dict[str, Any]]]:
        yield "message_start", {"message": self._frame(answer, 0)}
        for k, (block, more) in enumerate(self._blocks(answer)):
            empty = {"text": ""} if block["type"] == "text" else {"input": {}}
            yield "content_block_start", {"index": k, "content_block": block | empty}
            if block["type"] == "text":
                for piece in _pieces(more["text"]):
                    yield "content_block_delta", {"index": k, "delta": {"type": "text_delta", "text": piece}}
            else:
                delta = {"type": "input_json_delta", "partial_json": json.dumps(more["input"])}
                yield "content_block_delta", {"index": k, "delta": delta}
            yield "content_block_stop", {"index": k}
        ended = {"stop_reason": self._stop(answer), "stop_sequence": None}
        yield "message_delta", {"delta": ended, "usage": {"output_tokens": len(answer.ids)}}
        yield "message_stop", {}

    def _blocks(self, answer: WireAnswer) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Each block, and what its start in a stream leaves empty."""
        text = [({"type": "text"}, {"text": answer.text})] if answer.text or not answer.calls else []
        return [
            *text,
            *(
                ({"type": "tool_use", "id": c.id, "name": c.name}, {"input": _object(c.arguments)})
                for c in answer.calls
            ),
        ]

    def _stop(self, answer: WireAnswer) -> str:
        return "max_tokens" if answer.cut else "tool_use" if answer.calls else "end_turn"

    def _frame(self, answer: WireAnswer, sampled: int) -> dict[str, Any]:
        return {
            "id": f"msg_{answer.id}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": answer.read, "output_tokens": sampled},
        }

    def refusal(self, refused: RefusedRequest) -> dict[str, Any]:
        return {"type": "error", "error": {"type": refused.kind, "message": refused.message}}


MODEL = "policy"
"""The name under which the policy answers, whatever it is asked for by."""
FORMS: dict[str, WireForm] = {
    "/v1/chat/completions": ChatCompletions(),
    "/v1/responses": Responses(),
    "/v1/messages": AnthropicMessages(),
}
"""By path."""


def called(name: str, arguments: Any, call_id: str = "") -> ToolUse:
    """A call whose arguments are an object, or its JSON."""
    found = arguments
    if isinstance(arguments, str):
        try:
            found = read_json(arguments or "{}")
        except UnreadableError:
            return ToolUse(name, arguments, call_id)
    return ToolUse(name, json.dumps(found, sort_keys=True, ensure_ascii=False), call_id)


def _pieces(text: str) -> Iterator[str]:
    return (text[k : k + CHUNK] for k in range(0, len(text), CHUNK))


def _list(body: Mapping[str, Any], key: str, most: int) -> list[Any]:
    found = body.get(key)
    if not isinstance(found, list) or not 0 < len(found) <= most:
        came = f"{len(found)} of them" if isinstance(found, list) else short(found)
        raise wrong(f"{key}: expected a list of 1 to {most} messages, got {came}")
    return found


def _offered(body: Mapping[str, Any]) -> list[Any]:
    found = body.get("tools") or []
    if not isinstance(found, list) or len(found) > MAX_OFFERED:
        raise wrong(f"tools: expected a list of at most {MAX_OFFERED} functions, got {short(found)}")
    return found


def _tool(function: Any) -> Tool:
    name, schema = (function.get("name"), function.get("parameters")) if isinstance(function, dict) else (None, None)
    if not isinstance(name, str) or name.split() != [name] or not isinstance(schema or {}, dict):
        raise wrong(f"tools: expected functions with a name and parameters, got {short(function)}")
    schema = {"type": "object", "properties": {}} | (schema or {})  # templates walk over the properties
    each = schema["properties"]
    if not isinstance(each, dict) or not all(isinstance(p, dict) for p in each.values()):
        raise wrong(f"tools: expected properties of {name} that are schemas by name, got {short(each)}")
    return Tool(name, schema, str(function.get("description") or ""))


def _role(message: Any, k: int) -> ChatRole:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str) or role not in ROLES:
        raise wrong(f"message {k}: expected a role of {', '.join(ROLES)}, got {short(role if role else message)}")
    return ROLES[role]


def _call(function: Any, call_id: Any, k: int) -> ToolUse:
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise wrong(f"message {k}: expected a call of a function with a name, got {short(function)}")
    return called(name, function.get("arguments") or {}, str(call_id or ""))


def _text(content: Any, where: str) -> str:
    """The text of a content: a text, or parts that are texts."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, list) else [content]
    texts: list[str] = []
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else part
        if not isinstance(text, str):
            raise wrong(f"{where}: expected text, or parts of text, got {short(part)}; images are not read")
        texts.append(text)
    return "\n".join(texts)


def _count(body: Mapping[str, Any], key: str) -> int | None:
    found = body.get(key)
    if found is not None and (type(found) is not int or found < 1):
        raise wrong(f"{key}: expected a number of tokens of at least 1, got {short(found)}")
    return found


def _stops(found: Any) -> tuple[str, ...]:
    found = [found] if isinstance(found, str) else found or []
    if not isinstance(found, list) or not all(isinstance(text, str) and text for text in found):
        raise wrong(f"stop: expected a text or a list of texts, got {short(found)}")
    return tuple(found)


def _refuse_formats(found: Any) -> None:
    if isinstance(found, dict) and found.get("type", "text") != "text":
        raise wrong(
            f"response format {short(found.get('type'))}: what the policy says is not forced into a form; ask for "
            "text, or offer a tool"
        )


def _object(arguments: str) -> Any:
    """Arguments as an object; what is no JSON stands in one."""
    try:
        found = read_json(arguments)
    except UnreadableError:
        return {"text": arguments}
    return found if isinstance(found, dict) else {"value": found}

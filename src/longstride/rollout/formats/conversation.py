"""An episode as a conversation: OpenAI's chat messages, and what they cannot say. ATIF's steps are made of them.

What always holds: the goal stands in the first message, with the first observation on a new line behind it, as a policy
reads them; each turn is one message of the assistant, and what was seen after it is the next one. A thought in tags and
one call of a tool in tags are fields of their own; where these do not spell the turn to the letter, its text is kept
besides.
"""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from longstride.core.budget import StopReason
from longstride.core.content import Content, Media, chunks_of, joined, text_in
from longstride.core.errors import RunError, short
from longstride.core.trajectory import Trajectory
from longstride.models.thoughts import THINK, THOUGHT_END
from longstride.rollout.formats.fields import Data, content_of, without_prefix, written

_CALL = re.compile(r"<tool_call>((?:(?!<tool_call>).)*)</tool_call>\s*", re.DOTALL)
_URL = re.compile(r"data:([a-z0-9]+/[a-z0-9.+-]+);base64,", re.IGNORECASE)


class SpokenTurn(NamedTuple):
    """What a turn says, in parts."""

    content: str
    reasoning: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    """Names of tools, and their arguments, a JSON object."""

    @classmethod
    def of(cls, text: str) -> "SpokenTurn":
        """The parts of a turn's text."""
        reasoning = None
        if text.startswith(THINK) and THOUGHT_END in text:
            reasoning, _, text = text.removeprefix(THINK).partition(THOUGHT_END)
        found = _CALL.search(text)
        if found and found.end() == len(text) and (call := _call(found[1])):
            return cls(text[: found.start()], reasoning, (call,))
        return cls(text, reasoning)

    @property
    def text(self) -> str:
        """The parts, put together."""
        thought = "" if self.reasoning is None else f"{THINK}{self.reasoning}{THOUGHT_END}"
        calls = (f'<tool_call>\n{{"name": {json.dumps(n)}, "arguments": {a}}}\n</tool_call>' for n, a in self.calls)
        return thought + self.content + "\n".join(calls)


def _call(text: str) -> tuple[str, str] | None:
    try:
        call = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(call, dict) and isinstance(call.get("name"), str) and isinstance(call.get("arguments"), dict):
        return call["name"], json.dumps(call["arguments"])
    return None


def messages_of(t: Trajectory, data: Data, part: Callable[[Media], Data]) -> list[Data]:
    """The messages of an episode. What they say is taken out of `data`, its fields (`fields.data_of`).

    Args:
        t: the episode.
        data: changed.
        part: makes a part of a message of an image or of data.
    """
    goal = data["task"].pop("goal")
    seen = [turn.pop("observation") for turn in data["turns"]] + [data.pop("final", "")]
    first = joined((f"{goal}\n", *chunks_of(seen[0]))) if t.turns and seen[0] else goal
    messages: list[Data] = [{"role": "user", "content": written(first, part)}]
    for k, (turn, content) in enumerate(zip(data["turns"], seen[1:], strict=True)):
        said, name = SpokenTurn.of(turn["text"]), f"call_{k}"
        if said.text == turn["text"]:
            del turn["text"]
        message: Data = {"role": "assistant", "content": said.content}
        if said.reasoning is not None:
            message["reasoning_content"] = said.reasoning
        if said.calls:
            ((tool, arguments),) = said.calls
            function = {"name": tool, "arguments": arguments}
            message["tool_calls"] = [{"id": name, "type": "function", "function": function}]
        messages.append(message)
        if k + 1 < len(t.turns) or content:
            answer = {"role": "tool", "tool_call_id": name} if said.calls else {"role": "user"}
            messages.append({**answer, "content": written(content, part)})
    data["goal"] = len(goal)
    return messages


def restored(messages: object, data: Data, media: Callable[[Data], Media]) -> Data:
    """The fields of an episode, of its messages and of what they do not say; the inverse of `messages_of`.

    Raises:
        RunError: they do not fit; the message is the end of a sentence.
    """
    opening, turns, final = _read(messages, media)
    length, goal = data.pop("goal", None), text_in(opening)
    if not isinstance(length, int) or not 0 <= length <= len(goal):
        raise RunError(f"goal: expected how many of the {len(goal)} characters of the first message are the goal")
    goal, kept = goal[:length], data.get("turns")
    if not isinstance(kept, list) or len(kept) != len(turns):
        number = len(kept) if isinstance(kept, list) else "no"
        raise RunError(f"{len(turns)} messages of the assistant do not fit the {number} turns that are kept of it")
    first = without_prefix(opening, goal)
    seen = (without_prefix(first, "\n") if first else "") if first is not None else None
    if seen is None:
        raise RunError("the first message is not the goal and an observation on a new line")
    if not isinstance(data.get("task"), dict):
        raise RunError("task: expected an object")
    data["task"] = {**data["task"], "goal": goal}
    found = []
    for own, (text, after) in zip(kept, turns, strict=True):
        if not isinstance(own, dict):
            raise RunError(f"turns: expected objects, got {short(own)}")
        found.append({"text": text, **own, "observation": seen})
        seen = after
    return {**data, "turns": found, "final": final}


def foreign(messages: object, name: str, ordinal: int, media: Callable[[Data], Media]) -> Data:
    """The fields of an episode of others, who say no more than messages: the goal is what was said before the first
    turn.

    Args:
        messages: as chat APIs have them.
        name: of its task, unless somebody names one.
        ordinal: its number.
        media: reads a part that is no text.

    Raises:
        RunError: they are none.
    """
    opening, turns, final = _read(messages, media)
    seen: Content = joined(c for c in chunks_of(opening) if isinstance(c, Media)) if opening else ""
    found = []
    for text, after in turns:
        ids = {"prompt_ids": [], "sampled_ids": [], "behaviour_logprobs": [], "versions": []}
        found.append({"text": text, "observation": seen, **ids})
        seen = after
    task = {"id": name, "source": "others", "goal": text_in(opening), "start": ""}
    budget, stop = {"turns": max(1, len(turns))}, StopReason.ENV_ENDED.value
    return {
        "task": task, "ordinal": ordinal, "group": ordinal, "seed": 0, "budget": budget, "stop": stop, "turns": found,
        "final": final,
    }  # fmt: skip


def _read(messages: object, media: Callable[[Data], Media]) -> tuple[Content, list[tuple[str, Content]], Content]:
    """What was said before the first turn; of each turn its text, and what was seen after it; that of the last one."""
    if not isinstance(messages, list) or not messages:
        raise RunError(f"messages: expected a list of them, got {short(messages)}")
    blocks: list[tuple[str, list[Content]]] = [("", [])]
    for k, message in enumerate(messages, 1):
        try:
            role = message.get("role") if isinstance(message, dict) else None
            if role == "assistant":
                blocks.append((_said(message).text, []))
            elif role in ("system", "developer", "user", "tool", "function"):
                blocks[-1][1].append(content_of(message.get("content"), media))
            else:
                raise RunError(f"expected a role of system, user, assistant or tool, got {short(message)}")
        except RunError as e:
            raise RunError(f"message {k}: {e}") from None
    (_, opening), *turns = blocks
    if not opening:
        raise RunError("messages: expected what the agent was asked before what it said")
    seen = [(text, _lines(after)) for text, after in turns]
    return _lines(opening), seen, seen[-1][1] if seen else ""


def _lines(contents: list[Content]) -> Content:
    """One below the other."""
    return joined(chunk for k, content in enumerate(contents) for chunk in (*["\n"][: k > 0], *chunks_of(content)))


def _said(message: Data) -> SpokenTurn:
    content, reasoning, calls = (message.get(name) for name in ("content", "reasoning_content", "tool_calls"))
    if not isinstance(reasoning, str | None) or not isinstance(calls, list | None):
        raise RunError(f"expected a text as reasoning_content and a list as tool_calls, got {short(message)}")
    return SpokenTurn(text_in(content_of(content, _nothing)), reasoning, tuple(map(_called, calls or ())))


def _called(call: Any) -> tuple[str, str]:
    function = call.get("function") if isinstance(call, dict) else None
    name, arguments = (function.get(key) for key in ("name", "arguments")) if isinstance(function, dict) else ("", "")
    if isinstance(name, str) and isinstance(arguments, str | dict):
        return name, arguments if isinstance(arguments, str) else json.dumps(arguments)
    raise RunError(f'expected {{"function": {{"name": ..., "arguments": ...}}}}, got {short(call)}')


def _nothing(part: Data) -> Media:
    raise RunError(f"an assistant says texts alone, got {short(part)}")


def inline(media: Media) -> Data:
    """A part of a message that holds the bytes of an image, or of data."""
    url = f"data:{media.kind};base64,{base64.b64encode(media.data).decode('ascii')}"
    if media.kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"file_data": url}}


def of_inline(part: Data) -> Media:
    """The image or data in a part of a message.

    Raises:
        RunError: there is none, or it stands elsewhere: nothing is fetched.
    """
    inner = part.get(str(part.get("type")))
    url = str(inner.get("url", inner.get("file_data"))) if isinstance(inner, dict) else ""
    found = _URL.match(url)
    if not found:
        raise RunError(f"expected an image or a file in a data: URL, got {short(part)}")
    try:
        return Media(base64.b64decode(url[found.end() :], validate=True), found[1].lower())
    except (binascii.Error, ValueError) as e:
        raise RunError(f"an image or a file cannot be read: {e}") from None


def unseen(t: Trajectory) -> Iterator[Media]:
    """What its prompts have of earlier episodes."""
    seen = {c for content in (*(turn.observation for turn in t.turns), t.final) for c in chunks_of(content)}
    return (m for m in t.media if m not in seen)

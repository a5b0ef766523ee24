"""A player behind a chat API: a conversation goes there as messages, and words come back.

What always holds: whatever context policy a recipe has says what the model is told; a turn has the words, as the model
in this process would have said them (a thought between its tags, a call as `<tool_call>...</tool_call>`), the server's
count of tokens, and no sampled ids, so nothing of it is trained.
"""

import base64
import json
import re
import weakref
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from longstride.core.content import Content, Media, chunks_of, joined, text_in
from longstride.core.errors import ConfigError, EngineFailure, ModelError
from longstride.core.foreign import UnreadableError, read_json
from longstride.core.trajectory import Trajectory, Usage
from longstride.engines.base import Sampling
from longstride.models.api import ChatAPI, ChatClient, ContextFull, Said
from longstride.models.thoughts import THINK, THOUGHT_END, spoken
from longstride.rollout.context import ContextPolicy
from longstride.rollout.episode import Episode, Generation

if TYPE_CHECKING:  # the tokenizers behind it take seconds to import
    from longstride.models.chat import ChatConfig, ChatFormat

POLL_SECONDS = 0.05
"""How long a poll waits for something to come back."""
_CALL = re.compile(r"\s*<tool_call>(.*?)</tool_call>", re.DOTALL)


class Messages:
    """The chat format of one prompt that goes to an API. An id stands for a piece of text: so context policies, which
    put pieces one behind the other, need not know who reads them."""

    def __init__(self, config: "ChatConfig", tools: Sequence[dict[str, Any]] = ()) -> None:
        self._config, self._tools = config, tools
        self._pieces: list[tuple[str, Content]] = []
        """Role and content; without a role it goes on with the message before it."""

    def head(self, goal: str) -> list[int]:
        """All that stands before the first observation."""
        system = self._piece("system", self._config.system) if self._config.system else []
        return system + self._piece("user", goal)

    def observation(self, content: Content, first: bool = False, past: bool = False) -> list[int]:
        """An observation: the first one stands in the goal's message, on a new line."""
        if self._config.media == "leave_out":
            content = text_in(content)
        return self._piece("", joined(("\n", *chunks_of(content)))) if first else self._piece("user", content)

    def spoken(self, ids: list[int]) -> list[int]:
        """An earlier turn as it stands in later prompts: all of it, or what followed its thought."""
        return ids

    def said(self, text: str) -> list[int]:
        """What the model said."""
        return self._piece("assistant", spoken(text) if self._config.thinking == "strip" else text)

    def encode(self, text: str) -> list[int]:
        """Plain text, which goes on with what stands before it."""
        return self._piece("", text)

    def conversation(self, roles: Sequence[str], contents: Sequence[list[int]], later: bool) -> list[int]:
        """Messages of a conversation, each a piece."""
        for role, (piece,) in zip(roles, contents, strict=True):
            self._pieces[piece] = role, self._pieces[piece][1]
        return [piece for (piece,) in contents]

    def media(self, ids: Sequence[int]) -> tuple[Media, ...]:
        """Images in a prompt, each once."""
        found = (c for i in ids for c in chunks_of(self._pieces[i][1]) if isinstance(c, Media))
        return tuple(dict.fromkeys(found))

    def messages(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        """A prompt as the API takes it.

        Raises:
            ModelError: there is content that it has no form for.
        """
        merged: list[tuple[str, Content]] = []
        for role, content in (self._pieces[i] for i in ids):
            if role or not merged:
                merged.append((role or "user", content))
            else:
                before = merged[-1][1]
                merged[-1] = (merged[-1][0], joined([*chunks_of(before), *chunks_of(content)]))
        found: list[dict[str, Any]] = []
        open_calls: list[str] = []
        for role, content in merged:
            calls = _calls_in(text_in(content)) if role == "assistant" and self._tools else []
            if calls:
                open_calls = [f"call{len(found):03d}{k:02d}" for k in range(len(calls))]
                words = _CALL.sub("", text_in(content)).strip()
                functions = [{"name": name, "arguments": arguments} for name, arguments in calls]
                made = zip(open_calls, functions, strict=True)
                tool_calls = [{"id": i, "type": "function", "function": function} for i, function in made]
                found.append({"role": role, "content": words, "tool_calls": tool_calls})
            elif open_calls and role == "tool":
                found.append({"role": role, "tool_call_id": open_calls.pop(0), "content": _shown(content)})
            elif open_calls and role == "user":
                found += [{"role": "tool", "tool_call_id": i, "content": _shown(content)} for i in open_calls]
                open_calls = []
            else:
                found.append({"role": "user" if role == "tool" else role, "content": _shown(content)})
        return found

    def _piece(self, role: str, content: Content) -> list[int]:
        self._pieces.append((role, content))
        return [len(self._pieces) - 1]


class ChatPlayer:
    """A model behind a chat API.

    Args:
        api: who is asked.
        chat: system prompt, and what becomes of thoughts and images; its template is the server's own.
        context: makes a prompt of a history.
        sampling: how tokens are drawn.
        reader: makes ids of what it says, where a model that reads ids plays in the same episodes.

    Raises:
        ConfigError: the key is not set.
    """

    parts = 1

    def __init__(
        self,
        api: ChatAPI,
        chat: "ChatConfig",
        context: ContextPolicy,
        sampling: Sampling,
        reader: "ChatFormat | None" = None,
    ) -> None:
        self.api, self.context, self.sampling = api, context, sampling
        self._chat, self._reader, self._client = chat, reader, ChatClient(api)
        self._asked: dict[Future[Said], tuple[Episode, tuple[Media, ...]]] = {}
        weakref.finalize(self, self._client.close).atexit = False

    def ask(self, episode: Episode) -> None:
        """Raises: ModelError for content that the API has no form for."""
        told = Messages(self._chat, episode.functions)
        past = replace(
            episode.past,
            sampled=[told.said(turn.text) for turn in episode.trajectory.turns],
            earlier=[_told_as(told, t) for t in episode.plan.earlier or ()],
        )
        prompt = self.context.render(told, past)
        more = {"chat_template_kwargs": {"enable_thinking": False}} if self._chat.thinking == "off" else {}
        messages, drawn = told.messages(prompt), self.sampling
        asked = self._client.ask(
            messages, episode.max_new, episode.turn_seed, drawn.temperature, drawn.top_p, episode.functions, **more
        )
        self._asked[asked] = episode, told.media(prompt)

    def poll(self) -> list[tuple[Episode, Generation | EngineFailure]]:
        """Raises: ConfigError where no request would be answered, or a budget counts tokens and the server does not."""
        wait(self._asked, POLL_SECONDS, FIRST_COMPLETED)
        done: list[tuple[Episode, Generation | EngineFailure]] = []
        for future in [f for f in self._asked if f.done()]:
            episode, media = self._asked.pop(future)
            try:
                done.append((episode, self._generation(episode, future.result(), media)))
            except ContextFull:
                done.append((episode, Generation([], [], [], [], "", "context")))
            except EngineFailure as e:
                done.append((episode, e))
        return done

    def release(self, episode: Episode) -> None:
        for future in [f for f, (of, _) in self._asked.items() if of is episode]:
            del self._asked[future]
            future.cancel()

    def _generation(self, episode: Episode, said: Said, media: tuple[Media, ...]) -> Generation:
        if said.usage is None and episode.trajectory.budget.tokens is not None:
            raise ConfigError(f"budget.tokens limits an episode, and {self.api} does not count tokens; leave it out")
        thought = f"{THINK}{said.thought.strip()}{THOUGHT_END}\n\n" if said.thought else ""
        text = thought + "\n".join(filter(None, [said.text.strip(), *(_tagged(*call) for call in said.calls)]))
        ids = [*self._reader.encode(text), *self._reader.close] if self._reader else []
        usage = said.usage or Usage(requests=1)
        return Generation(ids, [], [], [], text, said.finish, len(ids), media=media, usage=usage)


def _told_as(told: Messages, t: Trajectory) -> Trajectory:
    """An earlier episode whose turns have the pieces of their words."""
    return replace(t, turns=[replace(u, prompt_ids=[], sampled_ids=told.said(u.text), given=0) for u in t.turns])


def _tagged(name: str, arguments: str | dict[str, Any]) -> str:
    """A call as environments read it; no tag can be closed inside."""
    call = json.dumps({"name": name, "arguments": arguments}).replace("<", "\\u003c")
    return f"<tool_call>{call}</tool_call>"


def _calls_in(text: str) -> list[tuple[str, str]]:
    """Name and arguments, as JSON, of the calls in a turn; none where one of them is not whole."""
    found: list[tuple[str, str]] = []
    for tagged in _CALL.findall(text):
        try:
            call = read_json(tagged)
            arguments = call["arguments"]
            found.append((str(call["name"]), arguments if isinstance(arguments, str) else json.dumps(arguments)))
        except (UnreadableError, LookupError, TypeError):
            return []
    return found


def _shown(content: Content) -> str | list[dict[str, Any]]:
    """Content as the API takes it: a text, or parts where there are images."""
    return content if isinstance(content, str) else [_part(chunk) for chunk in content]


def _part(chunk: str | Media) -> dict[str, Any]:
    if isinstance(chunk, str):
        return {"type": "text", "text": chunk}
    if not chunk.kind.startswith("image/"):
        raise ModelError(f"a chat API takes texts and images, and a prompt has {chunk}; set chat.media=leave_out")
    data = base64.b64encode(chunk.data).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:{chunk.kind};base64,{data}"}}

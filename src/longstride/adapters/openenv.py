"""Environments behind an OpenEnv server (github.com/meta-pytorch/OpenEnv), over its web socket.

What always holds: an episode is one connection, and so one session of the server; the server is untrusted: what it
sends is bounded in size and in time, read by `core.foreign`, and is shown and nothing else; a server that is gone, late
or breaks the protocol is an `EnvFailure`. An action is a JSON object that fits the server's own schema (or, where that
has one field, the field's value alone), checked before it is sent; what does not fit costs a turn.

| message | data |
|---|---|
| `reset` | seed, and what `Openenv.reset` adds; answered by `observation` |
| `step` | the action; answered by `observation`: `{"observation": {...}, "reward": 0.5, "done": false}` |
| `error` | `{"message": ..., "code": ...}` in place of an answer |
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from longstride.adapters.mcp import MAX_TOOLS, content_of, tool_of
from longstride.adapters.seeded import SUCCESS, SeededTasks
from longstride.core.address import Address
from longstride.core.content import Content, described, with_lines
from longstride.core.errors import EnvFailure, require, short
from longstride.core.foreign import UnreadableError, bounded, flag, json_object, number, read_json
from longstride.core.http import client, connect, post
from longstride.core.numbers import Count, Seconds
from longstride.core.task import Task
from longstride.envs.base import Observation, Step
from longstride.envs.schemas import check_schemas, misfit
from longstride.envs.text import said
from longstride.envs.tools import ALL, MAX_ARGUMENTS, Manual, Tool, parse, read_object, signature

T = TypeVar("T")

MAX_MESSAGE = 4 << 20
"""Bytes of one message of the server."""
REFUSED = ("VALIDATION_ERROR", "INVALID_JSON")
"""Codes of errors that are about the action."""
FULL = "CAPACITY_REACHED"
"""Code of a server that has no free session."""
CALL = "call_tool"
"""The type of an action that calls a tool (OpenEnv's RFC 003)."""
CLOSING = 2.0
"""Seconds that a server has for the end of a connection."""
AGAIN = 0.2
"""Seconds before a full server is asked again: it ends a session a little after its connection."""


class Openenv(SeededTasks):
    """An environment server; the seed of its `reset` is the task."""

    address: Address
    """Where it listens, such as `http://127.0.0.1:8000`."""
    goal: str = "Do what the environment asks for."
    """What the agent is to do; how to act is added to it."""
    reset: dict[str, Any] = {}
    """What `reset` takes besides the seed, such as `{difficulty = "hard"}`."""
    sessions: Count = 1
    """Sessions that the server allows at once: its `max_concurrent_envs`."""
    deadline: Seconds = 30.0
    """Seconds that the server has for one answer; below the pool's own."""

    @property
    def world(self) -> str:
        return self.address

    @property
    def at_once(self) -> int:
        return self.sessions

    def goal_of(self, seed: int) -> str:
        return self.goal

    def env(self) -> "OpenenvEnv":
        return OpenenvEnv(self)


class OpenenvEnv:
    """One episode: a connection to the server."""

    def __init__(self, source: Openenv) -> None:
        self._source = source
        self._name = f"the server {source.address}"
        self._actions = f"{self._name}'s actions"
        self._socket: Any = None
        self._schema: dict[str, Any] = {}
        self._tools: dict[str, Tool] = {}
        self._seen: Content = ""
        self._success: bool | None = None

    async def reset(self, task: Task, seed: int) -> Observation:
        """Connects and starts the episode of the task's seed; what can be done is what its schema says.

        Raises:
            EnvFailure: the server cannot be reached, has no free session, or does not answer as it should.
        """
        self._schema = await self._action_schema()
        await asyncio.to_thread(check_schemas, {self._actions: self._schema})
        wanted = {**self._source.reset, "seed": task.meta.get("seed", seed % (1 << 32))}
        try:
            async with asyncio.timeout(self._source.deadline):
                while (came := await self._first(wanted)) is None:
                    await asyncio.sleep(AGAIN)
        except TimeoutError:
            raise EnvFailure(
                f"{self._name} had no free session within {self._source.deadline:g} s; tasks.sessions is "
                f"{self._source.sessions}: set it to the server's max_concurrent_envs"
            ) from None
        self._look(came)
        if self._calls:
            return await self._offered()
        single = f", or the value of {field} alone" if (field := self._field) else ""
        how = f"End each turn with Action: and JSON of the form {signature(self._schema)}{single}."
        tool = Tool("act", self._schema, "does an action", ALL)
        return Observation(self._seen, manual=Manual((tool,), words=bounded(how)))

    async def step(self, text: str) -> Step:
        """Sends the action in the policy's text. Raises: EnvFailure when the server fails."""
        action = self._called(said(text)) if self._calls else self._parse(said(text))
        if isinstance(action, str):
            return Step(Observation(with_lines(self._seen, f"error: {action}")), error=action)
        came = await self._exchange("step", action)
        if isinstance(came, str):
            return Step(Observation(with_lines(self._seen, f"error: {came}")), error=came)
        error = self._answered(came) if self._calls else self._look(came)
        reward = _given(came, "reward", number, f"the reward of {self._name}")
        done = _given(came, "done", flag, f"`done` of {self._name}")
        shown = with_lines(self._seen, f"error: {error}") if error else self._seen
        return Step(Observation(shown), reward, terminated=done, action=json.dumps(action), error=error)

    async def final_state(self) -> dict[str, Any]:
        """`{"success": ...}` where an observation or its metadata said so."""
        return {} if self._success is None else {SUCCESS: self._success}

    async def close(self) -> None:
        """Ends the session and the connection."""
        socket, self._socket = self._socket, None
        if socket is not None:
            websockets = require("websockets", "openenv")
            with suppress(websockets.WebSocketException, OSError, TimeoutError):
                async with asyncio.timeout(CLOSING):
                    await socket.send(json.dumps({"type": "close"}))
                    await socket.close()
            socket.transport.abort()

    async def _first(self, wanted: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to `reset` over a new connection; None where the server is full."""
        websockets = require("websockets", "openenv")
        try:
            self._socket = await connect(self._source.address, "/ws", self._source.deadline, MAX_MESSAGE)
        except (OSError, TimeoutError, websockets.WebSocketException) as e:
            raise EnvFailure(f"{self._name} has no web socket at /ws: {str(e)[:200]}; start it first") from e
        came = await self._exchange("reset", wanted, full=True)
        if came == FULL:
            await self.close()
            return None
        if isinstance(came, str):
            raise EnvFailure(f"{self._name} refused reset with {short(wanted)}: {came}")
        return came

    async def _exchange(self, kind: str, data: dict[str, Any], full: bool = False) -> dict[str, Any] | str:
        """The data of the answer to a message, or why the server refused it; `full` allows `FULL` as a reason."""
        websockets = require("websockets", "openenv")
        try:
            async with asyncio.timeout(self._source.deadline):
                with suppress(websockets.ConnectionClosed):  # a full server says so at once, and closes
                    await self._socket.send(json.dumps({"type": kind, "data": data}))
                message = read_json(await self._socket.recv(decode=False))
        except TimeoutError:
            raise EnvFailure(f"{self._name} did not answer {kind} within {self._source.deadline:g} s") from None
        except websockets.ConnectionClosed as e:
            raise EnvFailure(f"{self._name} closed the connection before it answered {kind}: {str(e)[:200]}") from e
        except UnreadableError as e:
            raise EnvFailure(f"{self._name} answered {kind} with a message that {e}") from None
        what, came = (message.get("type"), message.get("data")) if isinstance(message, dict) else (None, None)
        if what == "observation" and isinstance(came, dict) and isinstance(came.get("observation"), dict):
            return came
        if what != "error" or not isinstance(came, dict):
            raise EnvFailure(f"{self._name} answered {kind} with {short(message)}; expected an observation")
        code, why = came.get("code"), bounded(str(came.get("message")), 300)
        if code == FULL and full:
            return FULL
        if code not in REFUSED:
            raise EnvFailure(f"{self._name} failed at {kind}: {why} ({short(code)})")
        errors = came.get("errors")
        return f"{why}: {short(errors, 200)}" if errors else why

    async def _action_schema(self) -> dict[str, Any]:
        """What the server takes as an action, without the field that OpenEnv adds to every action."""
        import httpx2

        url, deadline = f"{self._source.address}/schema", self._source.deadline
        try:
            async with client("", trust_env=False) as http:
                came = await post(http, url, None, deadline, MAX_MESSAGE, "GET")
        except TimeoutError:
            raise EnvFailure(f"{url} did not answer within {deadline:g} s") from None
        except httpx2.TransportError as e:
            raise EnvFailure(
                f"{self._name} cannot be reached: {str(e)[:200] or type(e).__name__}; start it first"
            ) from e
        if came.body is None:
            raise EnvFailure(f"{url} answered with more than {MAX_MESSAGE} bytes")
        schema = json_object(came.body).get("action")
        if not isinstance(schema, dict) or came.status != 200:
            raise EnvFailure(f"{url} answered status {came.status}; expected the schemas of an OpenEnv server")
        fields = schema.get("properties")
        own = {name: kind for name, kind in fields.items() if name != "metadata"} if isinstance(fields, dict) else {}
        return {**schema, "properties": own}

    @property
    def _calls(self) -> bool:
        """Whether an action is a call of a tool (OpenEnv's MCP actions)."""
        kind = self._schema["properties"].get("type")
        return isinstance(kind, Mapping) and kind.get("const") == CALL

    async def _offered(self) -> Observation:
        """What is seen first, where tools are called: what they are is asked for. Raises: EnvFailure."""
        came = await self._exchange("step", {"type": "list_tools"})
        listed = came["observation"].get("tools") if isinstance(came, dict) else None
        if not isinstance(listed, list) or len(listed) > MAX_TOOLS:
            raise EnvFailure(f"{self._name} lists {short(came)}; expected at most {MAX_TOOLS} tools")
        self._tools = {tool.name: tool for tool in (tool_of(each, "input_schema", self._name) for each in listed)}
        await asyncio.to_thread(check_schemas, {f"tool {name!r}": tool.schema for name, tool in self._tools.items()})
        return Observation(self._seen, manual=Manual(tuple(self._tools.values())))

    def _called(self, text: str) -> dict[str, Any] | str:
        """The action of a call, or what is wrong with it."""
        call = parse(text, self._tools)
        return call if isinstance(call, str) else {"type": CALL, "tool_name": call.tool, "arguments": call.arguments}

    def _answered(self, came: Mapping[str, Any]) -> str | None:
        """Takes what a tool answered over; what is wrong with the call, or None."""
        self._look(came)
        result, error = came["observation"].get("result"), came["observation"].get("error")
        if isinstance(result, dict) and isinstance(result.get("content"), list):
            self._seen = content_of(result["content"])
            failed = result.get("is_error") is True
            return bounded(described(self._seen), 300) if failed else None
        self._seen = bounded(result if isinstance(result, str) else json.dumps(result)) if result is not None else ""
        return bounded(str(error.get("message")), 300) if isinstance(error, dict) else None

    @property
    def _field(self) -> str:
        """The only field of an action; empty where it has several."""
        fields = self._schema["properties"]
        return next(iter(fields)) if len(fields) == 1 else ""

    def _parse(self, text: str) -> dict[str, Any] | str:
        """The action that fits the schema, or what is wrong with it."""
        if self._field and text and not text.startswith("{"):
            kind = self._schema["properties"][self._field]
            is_text = isinstance(kind, Mapping) and kind.get("type", "string") == "string"
            value = {"value": text[:MAX_ARGUMENTS]} if is_text else read_object(f'{{"value": {text}}}')
            action = value if isinstance(value, str) else {self._field: value["value"]}
        else:
            action = read_object(text) if text else "no action was given"
        if isinstance(action, str):
            return f"{action}; use {signature(self._schema)}"
        return misfit(action, self._schema, self._actions) or action

    def _look(self, came: Mapping[str, Any]) -> None:
        """Takes an observation over."""
        observation = came["observation"]
        shown = {k: v for k, v in observation.items() if k != "metadata" and v not in (None, "", [], {})}
        texts = [value if isinstance(value, str) else json.dumps(value) for value in shown.values()]
        if len(texts) > 1:
            texts = [f"{key}: {text}" for key, text in zip(shown, texts, strict=True)]
        self._seen = bounded("\n".join(texts))
        for place in (observation, observation.get("metadata"), came.get("metadata")):
            if isinstance(place, dict) and isinstance(place.get(SUCCESS), bool):
                self._success = place[SUCCESS]


def _given(came: Mapping[str, Any], key: str, kind: Callable[[Any, str], T], what: str) -> T:
    """A value of an answer, which may leave it out."""
    value = came.get(key)
    return kind(0 if value is None else value, what)

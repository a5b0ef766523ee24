"""The tools of a server of the Model Context Protocol, over stdio, as the actions of an environment.

What always holds: every episode has a server process of its own, which ends with it, and with whatever it started; the
server's messages are bounded in size, number and time, and read by `core.foreign`; a server that dies, hangs or breaks
the protocol is an `EnvFailure`; arguments are checked against the tool's schema before the server sees them, and what
does not fit costs a turn. What a tool answers is shown and nothing else is done with it; what the server asks of its
client (samples, files) is refused.

Protocol: modelcontextprotocol.io/specification/2025-06-18, messages one a line, JSON-RPC 2.0.
"""

import asyncio
import base64
import json
import os
import random
import shutil
import uuid
from collections import deque
from contextlib import suppress
from typing import Annotated, Any

from pydantic import AfterValidator, Field

import longstride
from longstride.adapters.dataset import Dataset
from longstride.core.content import Chunk, Content, Media, described, joined, text_in
from longstride.core.errors import EnvFailure, short
from longstride.core.foreign import NoJSONError, UnreadableError, bounded, bounded_content, read_json
from longstride.core.numbers import Count, Seconds
from longstride.core.processes import kill_started
from longstride.core.task import Task
from longstride.envs.base import Observation, Step, TaskSource
from longstride.envs.schemas import check_schemas
from longstride.envs.text import said
from longstride.envs.tools import Manual, Tool, arguments, parse

VERSION = "2025-06-18"
MAX_MESSAGE = 4 << 20
"""Bytes of one message of a server."""
MAX_TOOLS = 200
MAX_NAME = 128
"""Characters of a tool's name."""
MAX_ABOUT = 2000
"""Characters of what a tool says of itself."""
MAX_ASIDE = 10_000
"""Messages and other lines of a server before it answers."""
MARK = "LONGSTRIDE_SERVER"
"""Variable by which what a server started is known."""
CLOSING = 1.0
"""Seconds that a server has for ending by itself."""
ANSWER = Tool("answer", arguments(text="string"), "ends the task with an answer in words", "answer {text}")


def _program(command: tuple[str, ...]) -> tuple[str, ...]:
    if shutil.which(command[0]) is None:
        raise ValueError(f"there is no program {command[0]!r} on this machine; expected a command that starts a server")
    return command


class MCP(TaskSource):
    """Tasks of a data set, done with the tools of a server."""

    command: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_program)]
    """Program and arguments that start the server, such as `("python", "server.py")`."""
    tasks: Dataset
    """What is asked, and how answers are judged."""
    tools: tuple[str, ...] = ()
    """Tools that may be used; left out, all of them."""
    deadline: Seconds = 30.0
    """Seconds that the server has for one answer; below the pool's own."""
    servers: Count = 8
    """Server processes that may live at once."""

    @property
    def at_once(self) -> int:
        return self.servers

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return self.tasks.sample(rng, n)

    def held_out(self, n: int) -> list[Task]:
        return self.tasks.held_out(n)

    def env(self) -> "MCPEnv":
        return MCPEnv(self)


class MCPEnv:
    """One episode: a server, and calls of its tools up to an answer."""

    def __init__(self, source: MCP) -> None:
        self._source = source
        self._server = ServerProcess(source.command, source.deadline)
        self._tools: dict[str, Tool] = {}
        self._seen: list[str] = []

    async def reset(self, task: Task, seed: int) -> Observation:
        """Starts the server; what can be done are its tools. Raises: EnvFailure when that fails."""
        await self._server.start()
        offered = {tool.name: tool for tool in await self._server.tools()}
        for name in self._source.tools or offered:
            if name not in offered or name == ANSWER.name:
                raise EnvFailure(
                    f"{self._server.name} has the tools {', '.join(offered) or 'none'}; expected {name!r} among them "
                    f"(`{ANSWER.name}` is what ends an episode)"
                )
            self._tools[name] = offered[name]
        schemas = {f"tool {tool.name!r}": tool.schema for tool in self._tools.values()}
        await asyncio.to_thread(check_schemas, schemas)
        return Observation("", manual=Manual((*self._tools.values(), ANSWER)))

    async def step(self, text: str) -> Step:
        """Calls the tool in the policy's text, or ends with its answer. Raises: EnvFailure when the server fails."""
        verb, _, words = said(text).partition(" ")
        if verb == ANSWER.name and words.strip():
            answer = words.strip()
            return Step(Observation(""), terminated=True, action=f"answer {answer}", answer=answer)
        call = parse(text, self._tools | {ANSWER.name: ANSWER}) if verb != ANSWER.name else "answer takes words"
        if isinstance(call, str):
            return self._shown(f"error: {call}", error=call)
        content, failed = await self._server.call(call.tool, call.arguments)
        if failed:
            text = bounded(described(content))
            return self._shown(f"error: {text}", str(call), text)
        return self._shown(content, str(call))

    async def final_state(self) -> dict[str, Any]:
        """What was seen: `seen`, oldest first, and the last of it as `text`."""
        return {"seen": self._seen, "text": self._seen[-1] if self._seen else ""}

    async def close(self) -> None:
        """Ends the server."""
        await self._server.end()

    def _shown(self, content: Content, action: str | None = None, error: str | None = None) -> Step:
        self._seen.append(text_in(content))
        return Step(Observation(content), action=action, error=error)


class ServerProcess:
    """A server process and the conversation with it.

    Args:
        command: starts it.
        deadline: seconds that it has for one answer.
    """

    def __init__(self, command: tuple[str, ...], deadline: float) -> None:
        self.name = f"the server {short(' '.join(command))[1:-1]}"
        self._command, self._deadline = command, deadline
        self._process: asyncio.subprocess.Process | None = None
        self._mark = uuid.uuid4().hex
        self._complaints: deque[str] = deque(maxlen=5)
        """The last lines of its standard error."""
        self._listening: asyncio.Task[None] | None = None
        self._last = 0

    async def start(self) -> None:
        """Starts the process and shakes hands. Raises: EnvFailure."""
        loop = asyncio.get_running_loop()
        try:
            self._transport, protocol = await loop.subprocess_exec(
                lambda: asyncio.subprocess.SubprocessStreamProtocol(MAX_MESSAGE, loop),
                *self._command,
                start_new_session=True,
                env=os.environ | {MARK: self._mark},
            )
        except OSError as e:
            raise EnvFailure(f"{self.name} cannot be started: {e.strerror or e}") from e
        self._process = asyncio.subprocess.Process(self._transport, protocol, loop)
        self._listening = asyncio.create_task(self._listen(self._process.stderr))
        client = {"name": "longstride", "version": longstride.__version__}
        await self._ask("initialize", protocolVersion=VERSION, capabilities={}, clientInfo=client)
        await self._send({"method": "notifications/initialized"})

    async def tools(self) -> list[Tool]:
        """Its tools. Raises: EnvFailure."""
        found: list[Tool] = []
        page: dict[str, Any] = {}
        for _ in range(MAX_TOOLS):
            result = await self._ask("tools/list", **page)
            listed = result.get("tools")
            for tool in listed if isinstance(listed, list) else [None]:
                found.append(self._tool(tool))
            page = {"cursor": result.get("nextCursor")}
            if page["cursor"] is None or len(found) > MAX_TOOLS:
                break
        if len(found) > MAX_TOOLS or page["cursor"] is not None:
            raise EnvFailure(f"{self.name} has more than {MAX_TOOLS} tools or pages of tools; take one that has fewer")
        return found

    async def call(self, tool: str, arguments: dict[str, Any]) -> tuple[Content, bool]:
        """What a tool answers, and whether it is an error. Raises: EnvFailure."""
        result = await self._ask("tools/call", refusal="error", name=tool, arguments=arguments)
        if "error" in result:
            return result["error"], True
        parts = result.get("content")
        chunks = [chunk for part in parts if (chunk := _chunk(part))] if isinstance(parts, list) else []
        content = joined([line for chunk in chunks for line in ("\n", chunk)][1:])
        return bounded_content(content), result.get("isError") is True

    async def end(self) -> None:
        """Ends the process, and whatever it started. May be called more than once."""
        process, self._process = self._process, None
        if self._listening is not None:
            self._listening.cancel()
        if process is None:
            return
        try:
            with suppress(TimeoutError, OSError):
                if process.stdin is not None:
                    process.stdin.close()
                async with asyncio.timeout(CLOSING):
                    await process.wait()
        finally:
            kill_started(process.pid, f"{MARK}={self._mark}")
            self._transport.close()  # its pipes too, which nobody reads any more
        await process.wait()

    async def _ask(self, method: str, refusal: str = "", **params: Any) -> dict[str, Any]:
        """The result of a request; where the server refuses it and `refusal` is given, `{refusal: its message}`."""
        self._last, self._aside = self._last + 1, 0
        try:
            async with asyncio.timeout(self._deadline):
                await self._send({"id": self._last, "method": method, "params": params})
                while True:
                    message = await self._receive(method)
                    if "method" in message and "id" in message:  # the server asks: only a sign of life is given
                        answer = {"result": {}} if message["method"] == "ping" else {"error": _REFUSED}
                        await self._send({"id": message["id"], **answer})
                    elif message.get("id") == self._last and "method" not in message:
                        break
        except TimeoutError:
            raise EnvFailure(f"{self.name} did not answer {method} within {self._deadline:g} s{self._why}") from None
        if "error" in message:
            error = message["error"]
            said = str(error.get("message") if isinstance(error, dict) else error)
            if refusal:
                return {refusal: said}
            raise EnvFailure(f"{self.name} refused {method}: {said[:300]}")
        result = message.get("result")
        if not isinstance(result, dict):
            raise EnvFailure(f"{self.name} answered {method} with {short(result)}; expected an object")
        return result

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            await self._process.stdin.drain()
        except OSError:
            raise await self._death(str(message.get("method", "an answer"))) from None

    async def _receive(self, method: str) -> dict[str, Any]:
        """The next message; lines that are none (a server may print) are passed over."""
        assert self._process is not None and self._process.stdout is not None
        while True:
            try:
                line = await self._process.stdout.readline()
            except ValueError:  # longer than the stream's limit
                raise EnvFailure(f"{self.name} sent a message of more than {MAX_MESSAGE} bytes") from None
            if not line:
                raise await self._death(method)
            self._aside += 1
            if self._aside > MAX_ASIDE:
                raise EnvFailure(f"{self.name} sent {MAX_ASIDE} lines before it answered {method}")
            try:
                message = read_json(line)
            except NoJSONError:
                continue
            except UnreadableError as e:
                raise EnvFailure(f"{self.name} sent a message that {e}") from None
            if isinstance(message, dict):
                return message

    async def _death(self, method: str) -> EnvFailure:
        assert self._process is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING):
                await self._process.wait()
        code = self._process.returncode
        how = "closed its output" if code is None else f"ended with status {code}"
        return EnvFailure(f"{self.name} {how} before it answered {method}{self._why}")

    @property
    def _why(self) -> str:
        return f"; it last wrote: {' / '.join(self._complaints)}" if self._complaints else ""

    async def _listen(self, errors: asyncio.StreamReader | None) -> None:
        """Keeps the end of what the server writes to its standard error."""
        while errors is not None and (chunk := await errors.read(1 << 16)):
            self._complaints.extend(line[:200] for line in chunk.decode(errors="replace").splitlines() if line.strip())

    def _tool(self, tool: Any) -> Tool:
        name, schema = (tool.get("name"), tool.get("inputSchema")) if isinstance(tool, dict) else (None, None)
        if not (isinstance(name, str) and name.split() == [name] and isinstance(schema, dict)) or len(name) > MAX_NAME:
            raise EnvFailure(
                f"{self.name} lists a tool {short(tool)}; expected a name without spaces, of at most {MAX_NAME} "
                "characters, and an inputSchema"
            )
        return Tool(name, schema, bounded(str(tool.get("description") or ""), MAX_ABOUT))


_REFUSED = {"code": -32601, "message": "not offered by this client"}


def _chunk(part: Any) -> Chunk:
    """A part of a tool's answer: its text, its image or sound, or a word of what it is instead."""
    if not isinstance(part, dict):
        return ""
    if part.get("type") in ("image", "audio") and part.get("data"):
        with suppress(ValueError, TypeError):
            return Media(base64.b64decode(part["data"], validate=True), str(part.get("mimeType")))
    resource = part.get("resource")
    text = part.get("text", resource.get("text") if isinstance(resource, dict) else None)
    return text if isinstance(text, str) else f"({part.get('type', 'something')} that is not text)"

"""The tools of a server of the Model Context Protocol as the actions of an environment: over stdio, or over streamable
HTTP.

What always holds: over stdio every episode has a server process of its own, which ends with it, and with whatever it
started; over HTTP it has a session of its own of a server that runs already, which is ended with it. The server's
messages are bounded in size, number and time, and read by `core.foreign`; a server that dies, hangs or breaks
the protocol is an `EnvFailure`; arguments are checked against the tool's schema before the server sees them, and what
does not fit costs a turn. What a tool answers is shown and nothing else is done with it; what the server asks of its
client (samples, files) is refused.

Protocol: modelcontextprotocol.io/specification/2025-06-18, JSON-RPC 2.0. Over stdio a message is a line; over HTTP a
request is posted, and its answer is JSON or a stream of events.
"""

import asyncio
import base64
import json
import os
import random
import shutil
import uuid
from abc import abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, model_validator

import longstride
from longstride.adapters.dataset import Dataset
from longstride.core.address import Address
from longstride.core.content import Chunk, Content, Media, described, joined, text_in
from longstride.core.errors import EnvFailure, short
from longstride.core.foreign import NoJSONError, UnreadableError, bounded, bounded_content, read_json
from longstride.core.http import client, key_in, without_key
from longstride.core.numbers import Count, Seconds
from longstride.core.plain import plain
from longstride.core.processes import kill_started
from longstride.core.task import Task
from longstride.envs.base import Observation, Step, TaskSource
from longstride.envs.schemas import check_schemas
from longstride.envs.text import said
from longstride.envs.tools import Manual, Tool, arguments, parse

if TYPE_CHECKING:
    import httpx2

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
    if command and shutil.which(command[0]) is None:
        raise ValueError(f"there is no program {command[0]!r} on this machine; expected a command that starts a server")
    return command


INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
"""Variables that a server has of this process: those of the official SDK, the language, where temporary files are."""


class MCP(TaskSource):
    """Tasks of a data set, done with the tools of a server."""

    command: Annotated[tuple[str, ...], AfterValidator(_program)] = ()
    """Program and arguments that start the server, such as `("python", "server.py")`."""
    url: Address | None = None
    """In place of a command: the address of a server that runs already, such as `http://127.0.0.1:8000/mcp`."""
    key_env: str | None = None
    """The environment variable with the key of that server."""
    variables: dict[str, str] = {}
    """Variables of the environment of a server that is started. Of this process's own it has only those that every
    program needs (`INHERITED`): a stranger's server sees no key."""
    tasks: Dataset
    """What is asked, and how answers are judged."""
    tools: tuple[str, ...] = ()
    """Tools that may be used; left out, all of them."""
    deadline: Seconds = 30.0
    """Seconds that the server has for one answer; below the pool's own."""
    servers: Count = 8
    """Server processes, or sessions, that may live at once."""

    @model_validator(mode="after")
    def _is_one_server(self) -> Self:
        if bool(self.command) == (self.url is not None):
            raise ValueError("name either `command`, which starts a server, or the `url` of one that runs")
        return self

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
        self._server: ToolServer = (
            ServerProcess(source.command, source.deadline, source.variables)
            if source.url is None
            else ServerSession(source.url, key_in(source.key_env, "tasks.key_env"), source.deadline)
        )
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
        verb, *words = said(text).split(None, 1) or [""]
        if verb == ANSWER.name and words:
            answer = words[0]
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


class ToolServer:
    """A server and the conversation with it.

    Args:
        name: what messages call it.
        deadline: seconds that it has for one answer.
    """

    def __init__(self, name: str, deadline: float) -> None:
        self.name = f"the server {name}"
        self._deadline = deadline
        self._last = 0
        self._aside = 0
        """Messages since the last request."""

    async def start(self) -> None:
        """Connects and shakes hands. Raises: EnvFailure."""
        await self._connect()
        info = {"name": "longstride", "version": longstride.__version__}
        await self._ask("initialize", protocolVersion=VERSION, capabilities={}, clientInfo=info)
        await self._send({"method": "notifications/initialized"})

    async def tools(self) -> list[Tool]:
        """Its tools. Raises: EnvFailure."""
        found: list[Tool] = []
        page: dict[str, Any] = {}
        for _ in range(MAX_TOOLS):
            result = await self._ask("tools/list", **page)
            listed = result.get("tools")
            for tool in listed if isinstance(listed, list) else [None]:
                found.append(tool_of(tool, "inputSchema", self.name))
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
        return content_of(result.get("content")), result.get("isError") is True

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

    def _count(self, method: str) -> None:
        """Counts a message. Raises: EnvFailure where there are too many."""
        self._aside += 1
        if self._aside > MAX_ASIDE:
            raise EnvFailure(f"{self.name} sent {MAX_ASIDE} lines before it answered {method}")

    @property
    def _why(self) -> str:
        """What the server said of its trouble, to be put behind a message."""
        return ""

    @abstractmethod
    async def end(self) -> None:
        """Ends the conversation. May be called more than once."""

    @abstractmethod
    async def _connect(self) -> None:
        """Reaches the server. Raises: EnvFailure."""

    @abstractmethod
    async def _send(self, message: dict[str, Any]) -> None:
        """Sends a message. Raises: EnvFailure."""

    @abstractmethod
    async def _receive(self, method: str) -> dict[str, Any]:
        """The next message; `method` is what was asked. Raises: EnvFailure."""


class ServerProcess(ToolServer):
    """A server process, which is talked to over its standard input and output.

    Args:
        command: starts it.
        deadline: seconds that it has for one answer.
        variables: of its environment, besides `INHERITED`.
    """

    def __init__(self, command: tuple[str, ...], deadline: float, variables: Mapping[str, str]) -> None:
        super().__init__(short(" ".join(command))[1:-1], deadline)
        self._command = command
        self._variables = {name: os.environ[name] for name in INHERITED if name in os.environ} | dict(variables)
        self._process: asyncio.subprocess.Process | None = None
        self._mark = uuid.uuid4().hex
        self._complaints: deque[str] = deque(maxlen=5)
        """The last lines of its standard error."""
        self._listening: asyncio.Task[None] | None = None

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._transport, protocol = await loop.subprocess_exec(
                lambda: asyncio.subprocess.SubprocessStreamProtocol(MAX_MESSAGE, loop),
                *self._command,
                start_new_session=True,
                env=self._variables | {MARK: self._mark},
            )
        except OSError as e:
            raise EnvFailure(f"{self.name} cannot be started: {e.strerror or e}") from e
        self._process = asyncio.subprocess.Process(self._transport, protocol, loop)
        self._listening = asyncio.create_task(self._listen(self._process.stderr))

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
            self._count(method)
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


class ServerSession(ToolServer):
    """A session of a server that is talked to over streamable HTTP.

    Args:
        url: its address.
        key: sent as a bearer token; empty for none.
        deadline: seconds that it has for one answer.
    """

    def __init__(self, url: str, key: str, deadline: float) -> None:
        super().__init__(url, deadline)
        self._url, self._key = url, key
        self._client: httpx2.AsyncClient | None = None
        self._answer: httpx2.Response | None = None
        self._messages: AsyncIterator[bytes] | None = None
        """Those of the answer to the last request."""

    async def _connect(self) -> None:
        self._client = client(self._key)
        self._client.headers["Accept"] = "application/json, text/event-stream"

    async def end(self) -> None:
        """Ends the session, where there is one."""
        import httpx2

        client, self._client = self._client, None
        if client is None:
            return
        await self._forget()
        with suppress(TimeoutError, httpx2.HTTPError):
            async with asyncio.timeout(CLOSING):
                if "Mcp-Session-Id" in client.headers:
                    await client.delete(self._url)
        await client.aclose()

    async def _send(self, message: dict[str, Any]) -> None:
        import httpx2

        assert self._client is not None
        method = str(message.get("method", "an answer"))
        request = self._client.build_request(
            "POST", self._url, content=json.dumps({"jsonrpc": "2.0", **message}).encode()
        )
        try:
            async with asyncio.timeout(self._deadline):
                answer = await self._client.send(request, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL) as e:
            raise EnvFailure(f"{self.name} cannot be reached: {short(str(e) or type(e).__name__)}") from e
        except TimeoutError:
            raise EnvFailure(f"{self.name} did not answer {method} within {self._deadline:g} s") from None
        if not answer.is_success:
            words = without_key(await self._words(answer), self._key)
            raise EnvFailure(f"{self.name} answered {method} with status {answer.status_code}{words}")
        if "method" not in message or "id" not in message:  # nothing is to be answered
            await answer.aclose()
            return
        if session := answer.headers.get("Mcp-Session-Id"):
            self._client.headers["Mcp-Session-Id"] = session
        self._client.headers["MCP-Protocol-Version"] = VERSION
        await self._forget()
        self._answer, self._messages = answer, self._read(answer)

    async def _receive(self, method: str) -> dict[str, Any]:
        import httpx2

        assert self._messages is not None
        try:
            async for data in self._messages:
                self._count(method)
                try:
                    message = read_json(data)
                except UnreadableError as e:
                    raise EnvFailure(f"{self.name} sent a message that {e}") from None
                if isinstance(message, dict):
                    return message
        except httpx2.HTTPError as e:
            raise EnvFailure(f"{self.name} broke off before it answered {method}: {short(str(e))}") from e
        raise EnvFailure(f"{self.name} ended its answer before it answered {method}")

    async def _read(self, answer: "httpx2.Response") -> AsyncIterator[bytes]:
        """The messages of an answer: its body, or what its events hold."""
        events = answer.headers.get("Content-Type", "").startswith("text/event-stream")
        left, held = b"", list[bytes]()
        size = 0
        async for chunk in answer.aiter_bytes(1 << 16):
            left += chunk
            if len(left) + size > MAX_MESSAGE:
                raise EnvFailure(f"{self.name} sent a message of more than {MAX_MESSAGE} bytes")
            if not events:
                continue
            *lines, left = left.replace(b"\r\n", b"\n").split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    held.append(line[5:].strip())
                    size += len(line)
                elif not line and held:
                    yield b"\n".join(held)
                    held, size = [], 0
                else:
                    self._count("what was asked")
        if left and not events:
            yield left

    async def _words(self, answer: "httpx2.Response") -> str:
        """The beginning of an answer that is a refusal."""
        import httpx2

        data = b""
        with suppress(httpx2.HTTPError, TimeoutError):
            async with asyncio.timeout(CLOSING):
                async for chunk in answer.aiter_bytes(1 << 10):
                    data += chunk
                    if len(data) > 1 << 10:
                        break
        await answer.aclose()
        words = " ".join(plain(data.decode(errors="replace")).split())[:200]
        return f": {words}" if words else ""

    async def _forget(self) -> None:
        answer, self._answer, self._messages = self._answer, None, None
        if answer is not None:
            await answer.aclose()


_REFUSED = {"code": -32601, "message": "not offered by this client"}


def tool_of(listed: Any, schema_field: str, who: str) -> Tool:
    """A tool as it is listed. Raises: EnvFailure where it is none; `who` lists it."""
    name, schema = (listed.get("name"), listed.get(schema_field)) if isinstance(listed, dict) else (None, None)
    if not (isinstance(name, str) and name.split() == [name] and isinstance(schema, dict)) or len(name) > MAX_NAME:
        raise EnvFailure(
            f"{who} lists a tool {short(listed)}; expected a name without spaces, of at most {MAX_NAME} characters, "
            f"and an {schema_field}"
        )
    return Tool(name, schema, bounded(str(listed.get("description") or ""), MAX_ABOUT))


def content_of(parts: Any) -> Content:
    """What a tool answered, in parts."""
    chunks = [chunk for part in parts if (chunk := _chunk(part))] if isinstance(parts, list) else []
    return bounded_content(joined([line for chunk in chunks for line in ("\n", chunk)][1:]))


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

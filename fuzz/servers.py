"""What servers say, as targets: tools, environments, engines and judges. No server runs: what they say is fed to what
reads it."""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from fuzz.promise import typed

from longstride.adapters import mcp, openenv
from longstride.adapters.dataset import Dataset
from longstride.core.foreign import MAX_TEXT, json_object
from longstride.core.http import HTTPResponse
from longstride.core.plain import plain
from longstride.core.task import Task
from longstride.engines.base import Request
from longstride.engines.config import HTTP
from longstride.engines.http import LEAST, Taken, _Client
from longstride.envs.base import Observation
from longstride.envs.schemas import SECONDS, check_schemas, misfit
from longstride.envs.tools import Tool, read_object
from longstride.web.judging.judges import OpenAIJudge
from longstride.web.judging.rubric import RubricQuestion

TASK = Task(id="t", source="fuzz", goal="g", start="", meta={"seed": 1})
ADDRESS = "http://127.0.0.1:9"
PROMPT = [3, 4, 5]


def shown(observation: Observation) -> None:
    """What an agent sees is plain text of bounded size, and its tools are data."""
    for text in (observation.text, str(observation.manual or "")):
        text.encode()
        assert plain(text) == text, "a text that is not plain"
    assert len(observation.text) <= MAX_TEXT + 500, f"an observation of {len(observation.text)} characters"
    for tool in observation.manual.tools if observation.manual else ():
        json.dumps(tool.function).encode()


@cache
def questions() -> Dataset:
    """A data set of one task."""
    path = Path(tempfile.mkdtemp(prefix="longstride-fuzz-"), "asked.jsonl")
    path.write_text('{"prompt": "p", "answer": "1"}\n')
    return Dataset(path=path)


class _Process:
    """A server that says these lines, and ends."""

    returncode = 0

    def __init__(self, data: bytes) -> None:
        self.stdin, self.stdout = self, asyncio.StreamReader(mcp.MAX_MESSAGE)
        self.stdout.feed_data(data)
        self.stdout.feed_eof()

    def write(self, data: bytes) -> None: ...
    async def drain(self) -> None: ...
    async def wait(self) -> int:
        return 0


def of_mcp(data: bytes) -> None:
    """Lines of an MCP server: it lists tools, and one is called."""

    async def talk() -> None:
        env = mcp.MCP(command=("true",), tasks=questions(), deadline=5.0).env()
        env._server._process = _Process(data)  # type: ignore

        async def started() -> None: ...

        env._server.start = started
        shown(await env.reset(TASK, 0))
        shown((await env.step('Action: t {"a": 1, "b": ["x"]}')).observation)

    with typed():
        asyncio.run(talk())


class _Socket:
    """A web socket on which these messages come."""

    def __init__(self, messages: list[bytes]) -> None:
        self._messages, self.transport = messages, self

    def abort(self) -> None: ...
    async def send(self, text: str) -> None: ...
    async def close(self) -> None: ...
    async def recv(self, decode: bool) -> bytes:
        return self._messages.pop(0) if self._messages else b"{}"


def of_openenv(data: bytes) -> None:
    """What an OpenEnv server answers: its schemas, and after a NUL byte each an answer to `reset` and to `step`."""
    schema, *messages = data.split(b"\0")

    async def talk() -> None:
        env = openenv.Openenv(address=ADDRESS, deadline=5.0).env()
        shown(await env.reset(TASK, 0))
        for said in ('Action: {"a": 1}', "Action: 3", "Action: x"):
            shown((await env.step(said)).observation)
        json.dumps(await env.final_state())

    async def post(*args: Any) -> HTTPResponse:
        return HTTPResponse(200, {}, schema)

    async def connect(*args: Any) -> _Socket:
        return _Socket(messages)

    real = openenv.post, openenv.connect, openenv.AGAIN
    openenv.post, openenv.connect, openenv.AGAIN = post, connect, 0.0
    try:
        with typed():
            asyncio.run(talk())
    finally:
        openenv.post, openenv.connect, openenv.AGAIN = real


class _Answered(_Client):
    """A client of a server that gives this answer to everything."""

    def __init__(self, data: bytes) -> None:
        self._config, self._key, self._data = HTTP(url=f"{ADDRESS}/v1", model="m"), "", data
        self._url = self._config.address
        self._end_ids, self._vocabulary = frozenset([1]), 100

    async def _post(self, *args: Any, **more: Any) -> bytes:
        return self._data


def of_engine(data: bytes) -> None:
    """What an engine's server answers: a completion, and whatever else it is asked for."""
    client = _Answered(data)
    with typed():
        done = asyncio.run(client.complete(Request(PROMPT, 8, seed=0), 8, 0, Taken("m")))
        assert 0 < len(done.ids) == len(done.logprobs) <= 8 and all(LEAST <= p <= 0 for p in done.logprobs)
    with typed():
        asyncio.run(client.control("tokenize", {}, "POST", "")).get("tokens")


def of_judge(data: bytes) -> None:
    """What a judge's server answers."""
    judge = OpenAIJudge(url=f"{ADDRESS}/v1", model="m")
    with typed():
        said = judge._reply(HTTPResponse(200, {"content-type": "application/json"}, data))
        assert plain(said) == said
        assert RubricQuestion("q", "k", ("yes", "no")).read(said) in ("yes", "no", None)


def of_schemas(data: bytes) -> None:
    """A schema, and after a NUL byte arguments: described and checked in bounded time."""
    first, _, rest = data.partition(b"\0")
    tool, given = Tool("t", json_object(first)), read_object(rest.decode(errors="replace"))
    began = time.thread_time()
    tool.line.encode()
    with typed():
        check_schemas({"t": tool.schema})
        said = misfit(given if isinstance(given, dict) else {"a": 1}, tool.schema, "t")
        assert plain(said) == said and len(said) < 500
    took = time.thread_time() - began
    assert took < 4 * SECONDS + 1, f"{took:.1f} s"


SERVERS: dict[str, Callable[[bytes], None]] = {
    "mcp": of_mcp, "openenv": of_openenv, "engine": of_engine, "judge": of_judge, "schemas": of_schemas,
}  # fmt: skip

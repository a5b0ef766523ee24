"""Tools of an MCP server that is reached over HTTP: sessions, answers as JSON and as events, and servers that fail."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from adapter_runs import play
from judge_server import cut_off, endless, hang, response
from served import Served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from longstride.adapters.mcp import MCP
from longstride.core.component import build
from longstride.core.errors import ConfigError, EnvFailure
from longstride.envs.base import TaskSource
from longstride.rewards import judge

pytest.importorskip("jsonschema", reason="needs pip install 'longstride[mcp]'")

ADD = 'Action: add {"a": 1, "b": 2}'
INTEGERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
TOOL = {"name": "add", "inputSchema": {"properties": INTEGERS, "required": ["a", "b"]}}
ASIDES = [{"id": 900, "method": "ping"}, {"id": 901, "method": "sampling/createMessage"}, {"method": "notifications/x"}]


class Adder:
    """Adds numbers; `events` says whether answers are streams of events, and `misbehaving` answers calls instead."""

    def __init__(self) -> None:
        self.url = ""
        self.app = Starlette(routes=[Route("/mcp", self._answer, methods=["POST", "DELETE"])])
        self.reset()

    def reset(self) -> None:
        self.events = False
        self.misbehaving: Callable[[Request], Response] | None = None
        self.methods: list[str] = []
        self.headers: list[Any] = []
        self.bodies: list[dict[str, Any]] = []

    async def _answer(self, request: Request) -> Response:
        self.methods.append(request.method)
        self.headers.append(request.headers)
        if request.method == "DELETE":
            return response("")(request)
        body = await request.json()
        self.bodies.append(body)
        method = body.get("method")
        if method is None or "id" not in body:  # an answer, or something that wants none
            return response("", 202)(request)
        if method == "tools/call" and self.misbehaving:
            return self.misbehaving(request)
        total = str(sum(body["params"].get("arguments", {}).values()))
        result = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {}},
            "tools/list": {"tools": [TOOL]},
            "tools/call": {"content": [{"type": "text", "text": total}]},
        }[method]
        message = {"jsonrpc": "2.0", "id": body["id"], "result": result}
        session: dict[str, Any] = {"Mcp_Session_Id": "s1"} if method == "initialize" else {}
        if not self.events:
            return response(message, **session)(request)
        sent = [*ASIDES, message]
        text = ": hello\r\n\r\n" + "".join(f"event: message\r\ndata: {json.dumps(each)}\r\n\r\n" for each in sent)
        return response(text, media="text/event-stream", **session)(request)


@pytest.fixture(scope="module")
def running() -> Iterator[Adder]:
    found = Adder()
    with Served(found.app) as served:
        found.url = f"{served.url}/mcp"
        yield found


@pytest.fixture
def server(running: Adder) -> Adder:
    running.reset()
    return running


def source(folder: Path, url: str | None, **fields: Any) -> MCP:
    rows = [{"prompt": f"add {k} and 2", "answer": str(k + 2)} for k in range(9)]
    (folder / "sums.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    tasks = {"path": str(folder / "sums.jsonl"), "match": "number", "test_share": 0.3}
    found = build(TaskSource, {"type": "mcp", "url": url, "tasks": tasks, **fields})
    assert isinstance(found, MCP)
    return found


def played(folder: Path, url: str, *says: str, **fields: Any) -> Any:
    tools = source(folder, url, **fields)
    return play(tools.env(), tools.sample(random.Random(0), 1)[0], says)


@pytest.mark.parametrize("events", [False, True])
def test_an_episode_is_a_session_and_ends_it(tmp_path, server: Adder, events: bool, monkeypatch) -> None:
    server.events = events
    monkeypatch.setenv("TOOLS_KEY", "abc")
    first, steps, _ = played(tmp_path, server.url, ADD, 'Action: add {"a": 1}', "Action: answer 3", key_env="TOOLS_KEY")
    assert 'add {"a": integer, "b": integer}' in str(first.manual)
    assert [step.observation.text for step in steps[:1]] == ["3"] and steps[2].answer == "3"
    assert steps[1].error == "add: 'b' is a required property"
    asked = [body["method"] for body in server.bodies if "method" in body]
    assert asked == ["initialize", "notifications/initialized", "tools/list", "tools/call"]
    assert server.methods[-1] == "DELETE" and server.headers[-1]["mcp-session-id"] == "s1"
    assert all(headers["authorization"] == "Bearer abc" for headers in server.headers)
    assert server.headers[1]["mcp-protocol-version"] == "2025-06-18" and "mcp-session-id" not in server.headers[0]
    refused = [body for body in server.bodies if "method" not in body]
    assert [("result" in body, "error" in body) for body in refused] == [(True, False), (False, True)] * (3 * events)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (response("no\x1b[31m disk", 500), r"answered tools/call with status 500: no disk"),
        (response("", 307, Location="http://127.0.0.1:9/"), r"answered tools/call with status 307$"),
        (response("", 404), r"answered tools/call with status 404$"),
        (response("not json"), r"sent a message that is not JSON"),
        (response([1]), r"ended its answer before it answered tools/call"),
        (response("x" * (5 << 20)), r"sent a message of more than \d+ bytes"),
        (endless("x" * 100_000), r"sent a message of more than \d+ bytes"),
        (response("data: {}\n\n" * 11_000, media="text/event-stream"), r"sent 10000 lines before it answered"),
        (response(": noise\n" * 11_000, media="text/event-stream"), r"sent 10000 lines before it answered"),
        (response("data: {}\n\n", media="text/event-stream"), r"ended its answer before it answered tools/call"),
        (response({"jsonrpc": "2.0", "id": 3, "result": []}), r"answered tools/call with \[\]; expected an object"),
        (cut_off, r"broke off before it answered tools/call"),
    ],
)  # fmt: skip
def test_a_server_that_fails_is_an_environment_failure_with_its_address(
    tmp_path, server: Adder, how: Any, message: str
) -> None:
    server.misbehaving = how
    with pytest.raises(EnvFailure, match=rf"the server http://127.0.0.1:\d+.* {message}"):
        played(tmp_path, server.url, ADD)


def test_a_server_that_says_nothing_is_given_up_after_the_deadline(tmp_path, server: Adder) -> None:
    async def asked() -> None:
        tools = source(tmp_path, server.url, deadline=30.0)
        env = tools.env()
        await env.reset(tools.sample(random.Random(0), 1)[0], 0)
        server.misbehaving = hang
        env._server._deadline = 0.5  # the handshake had its time
        try:
            with pytest.raises(EnvFailure, match=r"did not answer tools/call within 0.5 s"):
                await env.step(ADD)
        finally:
            await env.close()
            await env.close()

    asyncio.run(asked())


def test_a_server_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(EnvFailure, match=r"the server http://127.0.0.1:9/mcp cannot be reached"):
        played(tmp_path, "http://127.0.0.1:9/mcp")


def test_either_a_command_or_an_address_is_named(tmp_path, server: Adder) -> None:
    for url, fields in ((server.url, {"command": ["python"]}), (None, {})):
        with pytest.raises(ConfigError, match="name either `command`, which starts a server, or the `url`"):
            source(tmp_path, url, **fields)
    with pytest.raises(ConfigError, match="expected an address such as"):
        source(tmp_path, "ftp://127.0.0.1/mcp")
    with pytest.raises(ConfigError, match="the environment variable 'NO_SUCH_KEY' holds nothing"):
        played(tmp_path, server.url, key_env="NO_SUCH_KEY")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_server_of_the_official_package_answers(tmp_path, as_json: bool) -> None:
    pytest.importorskip("mcp", reason="needs pip install mcp")
    from examples.mcp_library import RECIPE
    from examples.mcp_library_server import server as library

    with Served(library.streamable_http_app(json_response=as_json)) as served:
        assert isinstance(RECIPE.tasks, MCP)
        tools = RECIPE.tasks.replace(command=(), url=f"{served.url}/mcp")
        task = next(t for t in tools.sample(random.Random(0), 50) if "418" in t.goal)
        says = ['Action: shelf {"row": "low"}', 'Action: pages {"book": "Dracula"}', "Action: answer Dracula"]
        _, steps, state = play(tools.env(), task, says)
    assert [s.observation.text for s in steps] == ["Ulysses, Dracula, Faust", "418", ""]
    assert judge(task, steps[-1].answer, state).success

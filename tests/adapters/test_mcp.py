"""Tools of an MCP server as actions: what is offered, what is checked, and servers that die, hang or flood."""

import asyncio
import json
import os
import random
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from adapter_runs import few_words, play, run, small
from helpers import SLOW

from longstride.adapters.mcp import MCP
from longstride.core.component import build
from longstride.core.content import Media
from longstride.core.errors import ConfigError, EnvFailure
from longstride.envs.base import TaskSource
from longstride.envs.tools import MAX_ARGUMENTS, Tool, misfit, parse, read_object
from longstride.rewards import judge

pytest.importorskip("jsonschema", reason="needs pip install 'longstride[mcp]'")

SERVER = str(Path(__file__).parents[1] / "support" / "mcp_server.py")


def source(folder: Path, how: str = "", **fields: Any) -> MCP:
    rows = [{"prompt": f"add {k} and 2", "answer": str(k + 2)} for k in range(20)]
    (folder / "sums.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    tasks = {"path": str(folder / "sums.jsonl"), "match": "number", "test_share": 0.3}
    found = build(TaskSource, {"type": "mcp", "command": [sys.executable, SERVER, how], "tasks": tasks, **fields})
    assert isinstance(found, MCP)
    return found


def played(folder: Path, *says: str, how: str = "", **fields: Any) -> Any:
    tools = source(folder, how, **fields)
    return play(tools.env(), tools.sample(random.Random(0), 1)[0], says)


def test_the_goal_names_the_tools_and_an_answer_ends_the_episode(tmp_path) -> None:
    tools = source(tmp_path)
    task = tools.sample(random.Random(0), 1)[0]
    wanted = task.meta["answer"]
    first, (sum_, end), state = play(tools.env(), task, ['Action: add {"a": 1, "b": 2}', f"Action: answer {wanted}"])
    assert 'add {"a": integer, "b": integer}: Adds two numbers.' in str(first.manual)
    assert 'shelf {"row": "top"|"low"?, "word": string?}' in str(first.manual) and "answer TEXT" in str(first.manual)
    assert (sum_.observation.text, sum_.action, sum_.error) == ("3", 'add {"a": 1, "b": 2}', None)
    assert end.answer == wanted and end.terminated and state == {"seen": ["3"], "text": "3"}
    assert judge(task, end.answer, state).success


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Action: sub {}", "unknown tool 'sub'; .*Known: add, answer, env, shelf"),
        ("", "no action was given"),
        ("Action: answer", "answer takes words"),
        ("Action: add 1 2", r'add takes \{"a": integer, "b": integer\}; .1 2. is not JSON: Extra data at character 3'),
        ("Action: add [1, 2]", "is not a JSON object"),
        ('Action: add {"a": 1}', "add: 'b' is a required property"),
        ('Action: add {"a": 1, "b": "2"}', "add: b: '2' is not of type 'integer'"),
        ('Action: add {"a": 1, "b": 2, "c": 3}', "add: Additional properties are not allowed"),
        ('Action: add {"a": 1, "b": 1e999}', "1e999 is not a number of JSON"),
        ('Action: add {"a": 1, "b": NaN}', "cannot be read"),
        ('Action: shelf {"row": "mid"}', r"shelf: row: 'mid' is not one of \['top', 'low'\]"),
        ("Action: add " + "[" * 9000, "cannot be read|is not JSON"),
        ("Action: add " + "9" * (MAX_ARGUMENTS + 1), "are too many"),
    ],
)
def test_a_call_that_does_not_fit_costs_a_turn_and_reaches_no_server(tmp_path, text: str, problem: str) -> None:
    _, (step,), _ = played(tmp_path, text, how="die")
    assert step.action is None and not step.terminated and step.observation.text == f"error: {step.error}"
    import re

    assert re.search(problem, step.error)


def test_what_a_tool_says_is_shown_whatever_it_is(tmp_path) -> None:
    says = ['Action: shelf {"row": "top"}', "Action: shelf", 'shelf {"word": "refuse"}', "env"]
    _, (parts, failed, refused, resource), _ = played(tmp_path, *says)
    assert parts.observation.text == "(image that is not text)\na red lamp" and parts.error is None
    assert (
        failed.observation.text == "error: a red lamp" and failed.error == "a red lamp" and failed.action == "shelf {}"
    )
    assert refused.observation.text == "error: no such word"
    assert resource.observation.text.startswith("pid ")
    _, (pictured,), _ = played(tmp_path, says[0], how="picture")
    assert pictured.observation.content == (Media(b"\x89PNG\r\n"), "\na red lamp")
    _, (broken,), _ = played(tmp_path, says[0], how="broken")
    assert broken.observation.content == parts.observation.content
    _, (half,), _ = played(tmp_path, "env", how="half")
    assert half.observation.text == "half ? a character"


def test_a_server_has_no_variable_that_may_be_secret(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MY_SECRET", "x")
    _, (said,), _ = played(tmp_path, "env", variables={"MY_KEY": "y"})
    assert all(f"'{name}'" in said.observation.text for name in ("PATH", "MY_KEY"))
    assert "MY_SECRET" not in said.observation.text


def test_an_answer_may_stand_on_a_line_of_its_own(tmp_path) -> None:
    _, (step,), _ = played(tmp_path, "Action: answer\n474 pages,\n  or more ")
    assert step.terminated and step.answer == "474 pages,\n  or more"


def test_only_the_tools_that_are_named_may_be_used(tmp_path) -> None:
    first, (step,), _ = played(tmp_path, "env", tools=["add"])
    assert "shelf" not in str(first.manual) and "unknown tool 'env'" in (step.error or "")
    with pytest.raises(EnvFailure, match="has the tools add, shelf, env; expected 'sub' among them"):
        played(tmp_path, tools=["sub"])


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("early", r"ended with status 1 before it answered initialize; it last wrote: no configuration"),
        ("die", r"ended with status 3 before it answered tools/call; it last wrote: out of memory"),
        ("flood", r"sent a message of more than \d+ bytes"),
        ("list", r"answered tools/call with \['no', 'object'\]; expected an object"),
        ("flood of lines", r"sent 10000 lines before it answered tools/call"),
        ("flood of noise", r"sent a message of more than \d+ bytes"),
        ("deep", r"sent a message that cannot be read: it has more than 64 brackets"),
        ("schema", r"the schema of tool 'add' cannot be followed: .*127\.0\.0\.1:9"),
        ("null", r"the schema of tool 'add' is not a JSON schema: None is not of type 'array'"),
        ("many", r"the schema of tool 'add' has \d+ characters; expected at most \d+"),
        ("nameless", r"lists a tool .*'two words'.*expected a name without spaces"),
        ("long name", r"lists a tool .*expected a name without spaces, of at most 128 characters"),
        ("endless", r"more than 200 tools or pages of tools"),
    ],
)
def test_a_server_that_fails_is_an_environment_failure_with_its_command(tmp_path, how: str, message: str) -> None:
    with pytest.raises(EnvFailure, match=rf"the server .*{message}|^{message}"):
        played(tmp_path, 'Action: add {"a": 1, "b": 2}', how=how)


def test_a_server_that_is_late_is_an_environment_failure(tmp_path) -> None:
    tools = source(tmp_path, "hang")

    async def late() -> None:
        env = tools.env()
        await env.reset(tools.sample(random.Random(0), 1)[0], 0)
        env._server._deadline = 0.2  # from here on: how long a server takes to start is a machine's own
        try:
            await env.step('Action: add {"a": 1, "b": 2}')
        finally:
            await env.close()

    with pytest.raises(EnvFailure, match=r"did not answer tools/call within 0\.2 s"):
        asyncio.run(late())


def test_an_episode_has_a_server_of_its_own_that_ends_with_it(tmp_path) -> None:
    pids = {int(played(tmp_path, "env")[1][0].observation.text.split()[1]) for _ in range(2)}
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("how", ["flood of lines", "flood of noise"])
def test_a_server_that_floods_its_output_is_closed_at_once(tmp_path, how: str) -> None:
    tools = source(tmp_path, how)

    async def flooded() -> float:
        env = tools.env()
        await env.reset(tools.sample(random.Random(0), 1)[0], 0)
        with pytest.raises(EnvFailure):
            await env.step('Action: add {"a": 1, "b": 2}')
        began = time.monotonic()
        await env.close()
        return time.monotonic() - began

    assert asyncio.run(asyncio.wait_for(flooded(), 4 * SLOW)) < SLOW


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs a system that shows variables of processes")
@pytest.mark.parametrize("how", ["leave", "leave and end"])
def test_what_a_server_started_in_another_session_ends_with_it(tmp_path, how: str) -> None:
    note = tmp_path / "pid"
    tools = source(tmp_path, how, command=[sys.executable, SERVER, how, str(note)])
    with suppress(EnvFailure):  # of the server that ends
        play(tools.env(), tools.sample(random.Random(0), 1)[0], ["env"])
    state = Path(f"/proc/{int(note.read_text())}/stat")  # what was killed may wait for its new parent
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "ZX"


def test_names_and_answers_of_a_server_are_plain_text(tmp_path) -> None:
    first, (called,), _ = played(tmp_path, 'Action: add? {"?": "1"}', how="half name")
    assert 'add? {"?": integer?}' in str(first.manual) and called.error == "add?: ?: '1' is not of type 'integer'"
    _, (said,), _ = played(tmp_path, "env", how="escape")
    assert said.observation.text == " 31m said" and said.error is None


def test_an_answer_in_many_parts_is_bounded_as_a_whole(tmp_path) -> None:
    _, (step,), _ = played(tmp_path, "env", how="parts")
    assert len(step.observation.text) < 21_000 and step.observation.text.endswith("characters left out)")


def test_an_episode_that_is_given_up_leaves_no_server(tmp_path) -> None:
    tools = source(tmp_path)

    async def give_up() -> int:
        env = tools.env()
        await env.reset(tools.sample(random.Random(0), 1)[0], 0)
        pid = int((await env.step("env")).observation.text.split()[1])
        await env.close()
        await env.close()
        return pid

    with pytest.raises(ProcessLookupError):
        os.kill(asyncio.run(give_up()), 0)


def test_a_program_that_is_not_there_is_refused_with_the_recipe(tmp_path) -> None:
    with pytest.raises(ConfigError, match="there is no program 'no-such-program'"):
        source(tmp_path, command=["no-such-program"])


def test_patterns_of_a_server_are_not_searched_for_and_nothing_is_fetched() -> None:
    tool = Tool("t", {"properties": {"w": {"pattern": "(a+)+$"}}, "patternProperties": {"(x+)+y": {"type": "integer"}}})
    evil = {"w": "a" * 50 + "!", "x" * 50: 1}
    assert misfit(evil, {**tool.schema, "additionalProperties": False}, "t") == ""
    assert parse(f"t {json.dumps(evil)}", {"t": tool}) == ("t", evil)
    with pytest.raises(EnvFailure, match="not a JSON schema"):
        misfit({}, {"type": 7}, "t")
    with pytest.raises(EnvFailure, match="cannot be followed"):
        misfit({}, {"$ref": "#"}, "t")
    assert misfit({"n": 10**4000}, {"properties": {"n": {"multipleOf": 0.5}}}, "t") == "a number is too large"
    assert read_object('{"a": 1.5}') == {"a": 1.5}


@pytest.mark.slow
def test_the_example_answers_with_a_server_of_the_official_package() -> None:
    pytest.importorskip("mcp", reason="needs pip install mcp")
    from examples.mcp_library import RECIPE

    task = next(t for t in RECIPE.tasks.sample(random.Random(0), 50) if "418" in t.goal)
    says = ['Action: shelf {"row": "low"}', 'Action: pages {"book": "Dracula"}', "Action: answer Dracula"]
    first, steps, state = play(RECIPE.tasks.env(), task, says)
    assert 'pages {"book": string}: How many pages a book has.' in str(first.manual)
    assert [s.observation.text for s in steps] == ["Ulysses, Dracula, Faust", "418", ""]
    assert judge(task, steps[-1].answer, state).success


def test_one_iteration_trains(tmp_path) -> None:
    model = few_words(tmp_path / "model", "answer 2 3 4")
    (tmp_path / "any.jsonl").write_text(json.dumps({"prompt": "p", "answer": ".+"}) + "\n")
    tasks = {"path": str(tmp_path / "any.jsonl"), "test_path": str(tmp_path / "any.jsonl"), "match": "regex"}
    budget = {"turns": 8, "turn_tokens": 3}
    row = run(small(source(tmp_path, tasks=tasks), model, evaluation={"tasks": 1}, budget=budget), tmp_path)
    assert row["summary"]["failed"] == 0 and row["trained_tokens"] > 0

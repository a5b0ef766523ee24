"""Environments behind an OpenEnv server: what is shown and sent, and servers that fail."""

import asyncio
import json
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from adapter_runs import few_words, play, run, small
from helpers import SLOW
from openenv_server import server

from longstride.adapters.openenv import Openenv
from longstride.adapters.seeded import EnvironmentReward
from longstride.core.component import build
from longstride.core.errors import ConfigError, EnvFailure
from longstride.envs.base import TaskSource
from longstride.web.browsergym.loopback import loopback

pytest.importorskip("websockets", reason="needs pip install 'longstride[openenv]'")


@contextmanager
def served(how: str = "", most: int = 2, **fields: Any) -> Iterator[Openenv]:
    with loopback(server(how, most)) as address:
        found = build(TaskSource, {"type": "openenv", "address": address, "deadline": SLOW, **fields})
        assert isinstance(found, Openenv)
        yield found


def played(source: Openenv, *says: str) -> Any:
    return play(source.env(), source.sample(random.Random(0), 1)[0], says)


def test_an_action_is_json_or_the_value_of_its_only_field() -> None:
    with served(goal="Guess.") as source:
        wanted = random.Random(source.sample(random.Random(0), 1)[0].meta["seed"]).randrange(10)
        says = [f'Action: {{"guess": {(wanted + 1) % 10}}}', f"Action: {wanted}"]
        first, (wrong, right), state = played(source, *says)
    assert first.text == "a number"
    assert str(first.manual) == (
        'End each turn with Action: and JSON of the form {"guess": integer}, or the value of guess alone.'
    )
    assert wrong.observation.text.splitlines()[1:] == ["tries: 1", "success: false"] and 0 < wrong.reward < 1
    assert right.action == f'{{"guess": {wanted}}}' and right.reward == 1 and right.terminated
    assert state == {"success": True}


def test_tools_of_an_environment_are_called_and_their_answers_seen() -> None:
    with served("tools", goal="Guess.") as source:
        wanted = random.Random(source.sample(random.Random(0), 1)[0].meta["seed"]).randrange(10)
        calls = [(wanted + 1) % 10, 12, -1, "x", wanted]
        says = [f'Action: guess {{"guess": {json.dumps(n)}}}' for n in calls]
        first, steps, _ = played(source, *says)
    assert 'guess {"guess": integer}: Guesses.' in str(first.manual)
    wrong, large, failed, odd, right = steps
    assert (wrong.observation.text, wrong.reward, wrong.terminated, wrong.error) == ("wrong", 0.0, False, None)
    assert large.error == "too large" and large.observation.text.endswith("error: too large")
    assert failed.error == "wrong" and failed.action is not None
    assert odd.error == "guess: guess: 'x' is not of type 'integer'" and odd.action is None
    assert (right.observation.text, right.reward, right.terminated) == ("right", 1.0, True)


@pytest.mark.parametrize(
    ("how", "problem"), [("tools nameless", "lists a tool .*'a b'"), ("tools none", "expected at most")]
)
def test_tools_that_are_none_are_named(how: str, problem: str) -> None:
    with served(how) as source, pytest.raises(EnvFailure, match=problem):
        played(source)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no action was given"),
        ("Action: ten", "is not JSON"),
        ("Action: 12", "guess: 12 is greater than the maximum of 9"),
        ('Action: 1, "metadata": {}', 'is not JSON|{"guess": 1}'),
        ('Action: {"guess": "1"}', "guess: '1' is not of type 'integer'"),
        ('Action: {"guess": 1, "cheat": 2}', "Additional properties are not allowed"),
    ],
)
def test_what_does_not_fit_the_schema_costs_a_turn(text: str, problem: str) -> None:
    with served() as source:
        _, (step,), _ = played(source, text)
    assert not step.terminated and re.search(problem, step.error or str(step.action))
    if step.error:
        assert step.action is None and step.observation.text == f"a number\nerror: {step.error}"


def test_an_action_that_the_server_refuses_costs_a_turn() -> None:
    with served("refuse") as source:
        _, (step,), state = played(source, "3")
    assert step.action is None and step.error == "Invalid message: [{'loc': ['guess']}]" and state == {}


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("gone", r"closed the connection before it answered step"),
        ("raise", r"failed at step: division by zero \('EXECUTION_ERROR'\)"),
        ("large message", r"closed the connection before it answered step: .*too big|exceeds limit"),
        ("other", r"answered step with \{'type': 'state', 'data': \{\}\}; expected an observation"),
        ("nan", r"the reward of the server http.*: expected a finite number, got nan"),
        ("digits", r"the reward of the server http.*: expected a finite number, got 10000"),
        (
            "large",
            r"the reward of the server http.*: expected a finite number of at most 1e\+15 in size, got 1\.7e\+308",
        ),
        ("text", r"the reward of the server http.*: expected a finite number, got '0\.5'"),
        ("list", r"the reward of the server http.*: expected a finite number, got \[1\]"),
        ("done text", r"`done` of the server http.*: expected True or False, got 'false'"),
        ("done list", r"`done` of the server http.*: expected True or False, got \[\]"),
        ("done two", r"`done` of the server http.*: expected True or False, got 2"),
        ("deep", r"answered step with a message that cannot be read: it has more than 64 brackets"),
        ("many", r"answered step with a message that cannot be read: it has more than 100000 values"),
        ("null", r"the schema of the server http.*'s actions is not a JSON schema: None is not of type 'array'"),
        ("no schema", r"/schema answered status 404; expected the schemas of an OpenEnv server"),
        ("large schema", r"/schema answered with more than \d+ bytes"),
    ],
)
def test_a_server_that_fails_is_an_environment_failure(how: str, message: str) -> None:
    with served(how) as source, pytest.raises(EnvFailure, match=message):
        played(source, "3")


def test_a_server_that_is_late_is_an_environment_failure() -> None:
    async def late(source: Openenv) -> None:
        env = source.env()
        await env.reset(source.sample(random.Random(0), 1)[0], 0)
        env._source = source.replace(deadline=0.2)  # from here on: a slow machine has time to begin
        try:
            await env.step("3")
        finally:
            await env.close()

    with served("late") as source, pytest.raises(EnvFailure, match=r"did not answer step within 0\.2 s"):
        asyncio.run(late(source))


def test_an_answer_may_leave_out_whether_it_is_the_last_one() -> None:
    for how, over in (("done none", False), ("done number", True)):
        with served(how) as source:
            assert played(source, "3")[1][0].terminated is over


def test_what_a_server_shows_is_plain_text() -> None:
    with served("escape") as source:
        _, (step,), _ = played(source, "3")
    assert step.observation.text == 'clue: clue\nhalf ?: ["31m"]'


@pytest.mark.parametrize("how", ["redirect", "redirect socket"])
def test_redirects_are_not_followed(how: str) -> None:
    asked: list[str] = []

    async def elsewhere(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            asked.append(scope["path"])
            raise RuntimeError

    with loopback(elsewhere) as other, loopback(server(how, elsewhere=other)) as address:
        source = Openenv(address=address)
        with pytest.raises(EnvFailure, match="answered status 307|has no web socket at /ws: .*307"):
            played(source, "3")
    assert asked == []


def test_a_server_that_floods_its_connection_is_left_soon() -> None:
    async def left() -> float:
        env = source.env()
        await env.reset(source.sample(random.Random(0), 1)[0], 0)
        began = time.monotonic()
        await env.close()
        return time.monotonic() - began

    with served("flood") as source:
        assert asyncio.run(left()) < SLOW


def test_a_server_that_is_not_there_is_named_with_its_address() -> None:
    source = Openenv(address="http://127.0.0.1:9")
    with pytest.raises(EnvFailure, match=r"the server http://127\.0\.0\.1:9 cannot be reached.*start it first"):
        played(source)
    with pytest.raises(ConfigError, match="expected an address such as"):
        build(TaskSource, {"type": "openenv", "address": "127.0.0.1"})


def test_a_full_server_is_asked_again_until_the_deadline() -> None:
    with served(most=1) as source:
        for _ in range(3):  # the session before is ended a little after its connection
            assert played(source, "3")[1][0].action
    with served(most=0, deadline=1.0) as source, pytest.raises(EnvFailure, match="tasks.sessions is 1: set it to"):
        played(source)


def test_what_reset_takes_besides_the_seed() -> None:
    with served(reset={"level": "low"}) as source:
        assert played(source)[0].text == "a number"


def test_one_iteration_trains(tmp_path) -> None:
    model = few_words(tmp_path / "model", "Action: 1 2 3 4 5")
    with served(most=4, sessions=4) as source:
        row = run(small(source, model, EnvironmentReward()), tmp_path)
    assert row["summary"]["failed"] == 0 and row["trained_tokens"] > 0


def example(folder: Path, address: str, sessions: int) -> dict[str, Any]:
    from examples.openenv_guess import RECIPE

    model = few_words(folder / "model", "Action: 1 2 3 4 5")
    budget = {"turns": 4, "turn_tokens": 1}
    changes = {"model": model, "iterations": 1, "episodes_per_iteration": 16, "budget": budget, "test_budget": budget}
    tasks = {"address": address, "sessions": sessions}
    return run(RECIPE.replace(**changes, tasks=tasks, evaluation={"tasks": 4, "baselines": False}), folder)


def test_the_example_runs(tmp_path) -> None:
    with loopback(server(most=4)) as address:
        summary = example(tmp_path, address, sessions=4)["summary"]
    assert summary["failed"] == 0 and summary["episodes"] == 16 and summary["reward"] > summary["success"]


def test_the_example_runs_with_a_server_of_the_official_package(tmp_path) -> None:
    pytest.importorskip("openenv", reason="needs pip install openenv")
    from examples.openenv_guess_server import app

    with loopback(app) as address:
        row = example(tmp_path, address, sessions=8)
        first, steps, _ = played(
            Openenv(address=address), "Action: 11", 'Action: {"guess": "x"}', *(f"{k}" for k in range(10))
        )
    assert first.text == "I think of a number from 0 to 9." and '{"guess": integer}' in str(first.manual)
    assert steps[0].observation.text == "lower" and steps[1].error
    assert any(step.terminated and step.reward == 1 for step in steps)
    assert row["summary"]["failed"] == 0 and row["summary"]["episodes"] == 16

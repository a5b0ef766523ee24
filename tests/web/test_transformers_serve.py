"""`transformers serve` as a server: a judge, an agent behind a chat API, and no engine, as it gives no ids."""

import asyncio
import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from helpers import make_trajectory

import longstride as ls
from longstride.core.budget import StopReason
from longstride.core.errors import ConfigError, JudgeFailure
from longstride.core.task import Task
from longstride.engines.config import HTTP
from longstride.engines.http import HTTPEngine
from longstride.engines.preflight import preflight
from longstride.models.load import BASE, load_policy
from longstride.web.judging.judged import JudgedReward
from longstride.web.judging.judges import OpenAIJudge

pytestmark = pytest.mark.slow

STARTING = 300.0
"""Seconds that the server has, far more than it takes."""


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """Address of the server with the shipped model, which has words for the web and none for a verdict."""
    if lacking := [name for name in ("fastapi", "openai", "accelerate") if importlib.util.find_spec(name) is None]:
        pytest.skip(f"{', '.join(lacking)} missing; pip install 'longstride[judge-test]'")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "transformers.cli.transformers", "serve", str(BASE)),
            *("--host", "127.0.0.1", "--port", port, "--device", "cpu"),
        ],
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        url, began = f"http://127.0.0.1:{port}", time.monotonic()
        while not healthy(url):
            if process.poll() is not None or time.monotonic() - began > STARTING:
                process.kill()
                pytest.fail("the server did not start: " + process.communicate()[0].decode(errors="replace")[-2000:])
            time.sleep(0.1)
        yield f"{url}/v1"
    finally:
        process.kill()
        process.communicate()


def healthy(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/health", timeout=1, trust_env=False).status_code == 200
    except httpx2.TransportError:
        return False


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def test_a_judge_replies_greedily_and_a_model_that_cannot_judge_fails(served: str) -> None:
    judge = OpenAIJudge(url=served, model=str(BASE), max_tokens=12, timeout=STARTING)
    prompt = "shop : the lamp color yes no"
    policy: Any = load_policy("base")
    message = [{"role": "user", "content": prompt}]
    ids = policy.tokenizer.apply_chat_template(message, add_generation_prompt=True, return_tensors="pt")["input_ids"]
    new = policy.model.generate(ids, do_sample=False, max_new_tokens=12)[0, ids.shape[1] :]
    assert asyncio.run(judge.ask(prompt, 0)) == policy.tokenizer.decode(new, skip_special_tokens=True)
    task = Task(id="t", source="s", goal="what color is it?", start="", evaluator={"type": "judged"})
    episode = make_trajectory(task=task, answer="red", stop=StopReason.ANSWERED)
    with pytest.raises(JudgeFailure, match="none of yes, no in two replies"):
        asyncio.run(JudgedReward(judge=judge)(episode, {"text": "a lamp, red"}, 0))
    assert episode.judge_usage and episode.judge_usage.requests == 2 and 2 <= episode.judge_usage.sampled <= 24


def test_an_agent_behind_it_acts_as_the_model_in_this_process(served: str) -> None:
    recipe = ls.load_recipe("tti").replace(
        sampling={"temperature": 0}, test_budget={"turns": 2}, evaluation={"tasks": 2, "baselines": False}
    )
    api = ls.ChatAPI(url=served, name=str(BASE), concurrency=1, timeout=STARTING)
    far, near = ls.evaluate(api, recipe), ls.evaluate("base", recipe)
    assert [t.turns[0].text for t in far.trajectories] == [t.turns[0].text for t in near.trajectories]
    first = far.trajectories[0].turns[0]
    assert first.usage and first.prompt_tokens == near.trajectories[0].turns[0].prompt_tokens and first.sampled_tokens


def test_an_engine_without_token_ids_is_refused(served: str) -> None:
    policy = load_policy("base")
    with pytest.raises(ConfigError, match="status 4.*expected is a server that takes and returns token ids"):
        preflight(HTTPEngine(HTTP(url=served, model=str(BASE)), policy), policy)
